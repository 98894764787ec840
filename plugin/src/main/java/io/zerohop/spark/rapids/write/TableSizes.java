package io.zerohop.spark.rapids.write;

/**
 * The sizes in a map status of a GPU shuffle: the bytes of each partition's tables, counted as by
 * RAPIDS' caching manager. Headers do not count: adaptive execution coalesces partitions by these
 * sizes, and with a few rows in each the headers would outweigh the rows and lead to other plans
 * than RAPIDS' own manager. Used by one task's thread.
 */
public final class TableSizes {
  /**
   * What rows without bytes count (no columns, or structs without members), so that readers ask for
   * them. RAPIDS has the same number.
   */
  static final long WITHOUT_BYTES = 100;

  private final long[] sizes;
  private long total;

  public TableSizes(final int partitions) {
    sizes = new long[partitions];
  }

  /** Adds a table that has rows. */
  public void add(final int partition, final long bytes) {
    sizes[partition] += bytes == 0 ? WITHOUT_BYTES : bytes;
    total += bytes;
  }

  /** Bytes of all tables. */
  public long total() {
    return total;
  }

  /** By partition; 0 where there are no rows. */
  public long[] toArray() {
    return sizes.clone();
  }
}
