package io.zerohop.spark.rapids;

/**
 * Where the blocks of a batch lie in the buffer that RAPIDS' serializer has filled. A partition
 * without rows has no block, whatever the serializer has for it. Immutable.
 *
 * @param firstRows first row of each partition, and how many rows there are
 * @param starts where each partition begins, and where the last one ends
 */
record KudoLayout(int[] firstRows, int[] starts) {

  /** How many partitions there are. */
  int partitions() {
    return starts.length - 1;
  }

  /** Rows of all of them. */
  int rows() {
    return firstRows[partitions()];
  }

  /** Rows of a partition. */
  int rows(final int partition) {
    return firstRows[partition + 1] - firstRows[partition];
  }

  /** Bytes of a partition's block; 0 if it has none. */
  int bytes(final int partition) {
    return rows(partition) == 0 ? 0 : starts[partition + 1] - starts[partition];
  }

  /** Bytes of all blocks. */
  long bytes() {
    long bytes = 0;
    for (int partition = 0; partition < partitions(); partition++) {
      bytes += bytes(partition);
    }
    return bytes;
  }

  /** Is given blocks that lie without gaps, by their offset, and their place without any gaps. */
  @FunctionalInterface
  interface Run {
    void run(int offset, long place, long bytes);
  }

  /**
   * Lays the blocks out without gaps.
   *
   * @param first where the first one is to be
   * @return where each partition is to begin, and where the last one ends
   */
  long[] layOut(final long first, final Run consumer) {
    final long[] places = new long[partitions() + 1];
    places[0] = first;
    int from = 0;
    for (int partition = 0; partition < partitions(); partition++) {
      places[partition + 1] = places[partition] + bytes(partition);
      final boolean ends = partition + 1 == partitions() || bytes(partition + 1) == 0;
      if (ends || bytes(partition) == 0) {
        if (places[partition + 1] > places[from]) {
          consumer.run(starts[from], places[from], places[partition + 1] - places[from]);
        }
        from = partition + 1;
      }
    }
    return places;
  }
}
