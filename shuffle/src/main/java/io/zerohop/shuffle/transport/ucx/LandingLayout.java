package io.zerohop.shuffle.transport.ucx;

/**
 * Where the extents of one request go in the reader's memory, and which of them move as one run:
 * those that are neighbours at the owner. Reader and owner reckon it out of the same extents and
 * come to the same result, so it does not travel.
 *
 * <p>A run begins at the same place within 256 bytes as at the owner, which keeps the alignment
 * that codecs gave their blocks; small gaps between neighbours move with them.
 */
final class LandingLayout {
  /** Codecs align blocks to this much at most. */
  private static final int ALIGNMENT = 256;

  /** Neighbours are joined up to this; what moves is cut to it, too, so that progress shows. */
  static final int RUN_BYTES = 4 << 20;

  private final int[] places;
  private final int[] firstOfRun;
  private final int runs;
  private final long bytes;

  LandingLayout(final RemoteExtents extents) {
    final int count = extents.size();
    places = new int[count];
    firstOfRun = new int[count + 1];
    long end = 0;
    int run = -1;
    for (int i = 0; i < count; i++) {
      final long gap = i == 0 ? -1 : gap(extents, i);
      final boolean joins =
          gap >= 0
              && gap < ALIGNMENT
              && end + gap + extents.length(i) - places[firstOfRun[run]] <= RUN_BYTES;
      if (!joins) {
        run++;
        firstOfRun[run] = i;
      }
      final long at =
          joins
              ? end + gap
              : (end + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT + extents.offset(i) % ALIGNMENT;
      places[i] = Math.toIntExact(at);
      end = at + extents.length(i);
    }
    runs = run + 1;
    firstOfRun[runs] = count;
    bytes = end;
  }

  /** Bytes between an extent and the one before it; negative if they are no neighbours. */
  private static long gap(final RemoteExtents extents, final int extent) {
    if (extents.segment(extent) != extents.segment(extent - 1)) {
      return -1;
    }
    return (long) extents.offset(extent) - extents.offset(extent - 1) - extents.length(extent - 1);
  }

  /** What all of it takes. */
  long bytes() {
    return bytes;
  }

  /** Where an extent goes. */
  int place(final int extent) {
    return places[extent];
  }

  /** Runs that move. */
  int runs() {
    return runs;
  }

  /** The first extent of a run, whose place is the run's. */
  int first(final int run) {
    return firstOfRun[run];
  }

  /** Bytes of a run, gaps included. */
  int runBytes(final int run, final RemoteExtents extents) {
    final int last = firstOfRun[run + 1] - 1;
    return places[last] + extents.length(last) - places[firstOfRun[run]];
  }
}
