package io.zerohop.shuffle.transport.remote.wire;

import java.util.Comparator;
import java.util.function.IntConsumer;
import java.util.stream.IntStream;

/**
 * The layout of one request's extents in one piece of the reader's memory. Neighbours at the owner
 * form one run and move together. Reader and owner reckon it out of the same extents and come to
 * the same result, so it does not travel.
 *
 * <p>A run begins at the same place within 256 bytes as at the owner, which keeps the alignment
 * that codecs gave their blocks; small gaps between neighbours move with them.
 */
public final class ReceiveLayout {
  /** Codecs align blocks to this much at most. */
  private static final int ALIGNMENT = 256;

  /** Neighbours are joined up to this; what moves is cut to it, too, so that progress shows. */
  public static final int RUN_BYTES = 4 << 20;

  private final RemoteExtents extents;

  /** The extents that it is about. */
  private final int[] members;

  /** Of each extent of the request; those that it is not about have none. */
  private final int[] places;

  /** Positions among the members. */
  private final int[] firstOfRun;

  private final int runs;
  private final long bytes;

  /** The extents that it covers. */
  public enum Part {
    ALL,
    /** Those that lie in the owner's host memory. */
    HOST,
    /** Those that lie in the owner's GPU memory. */
    GPU;

    private boolean has(final RemoteExtents extents, final int extent) {
      return this == ALL || extents.isOnGpu(extent) == (this == GPU);
    }
  }

  public ReceiveLayout(final RemoteExtents extents, final Part part) {
    this.extents = extents;
    members = members(extents, part);
    places = new int[extents.size()];
    firstOfRun = new int[members.length + 1];
    long end = 0;
    int run = -1;
    for (int i = 0; i < members.length; i++) {
      final int extent = members[i];
      final long gap = i == 0 ? -1 : gap(members[i - 1], extent);
      final boolean joins =
          gap >= 0
              && gap < ALIGNMENT
              && end + gap + extents.length(extent) - places[first(run)] <= RUN_BYTES;
      if (!joins) {
        run++;
        firstOfRun[run] = i;
      }
      final long at =
          joins
              ? end + gap
              : (end + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT + extents.offset(extent) % ALIGNMENT;
      places[extent] = Math.toIntExact(at);
      end = at + extents.length(extent);
    }
    runs = run + 1;
    firstOfRun[runs] = members.length;
    bytes = end;
  }

  /** In the order in which they lie there: blocks of several batches take turns in a request. */
  private static int[] members(final RemoteExtents extents, final Part part) {
    final int[] asked =
        IntStream.range(0, extents.size()).filter(extent -> part.has(extents, extent)).toArray();
    if (inOrder(extents, asked)) {
      return asked; // As those of one batch are.
    }
    return IntStream.of(asked)
        .boxed()
        .sorted(
            Comparator.<Integer>comparingLong(extents::segment).thenComparingInt(extents::offset))
        .mapToInt(Integer::intValue)
        .toArray();
  }

  private static boolean inOrder(final RemoteExtents extents, final int[] members) {
    for (int i = 1; i < members.length; i++) {
      final int before = members[i - 1];
      final int segments = Long.compare(extents.segment(members[i]), extents.segment(before));
      if (segments < 0 || (segments == 0 && extents.offset(members[i]) < extents.offset(before))) {
        return false;
      }
    }
    return true;
  }

  /** Bytes between an extent and the one before it; negative if they are no neighbours. */
  private long gap(final int before, final int extent) {
    if (extents.segment(extent) != extents.segment(before)) {
      return -1;
    }
    return (long) extents.offset(extent) - extents.offset(before) - extents.length(before);
  }

  /** Returns the bytes of all extents. */
  public long bytes() {
    return bytes;
  }

  /** Returns the place of an extent. */
  public int place(final int extent) {
    return places[extent];
  }

  /** Runs that move. */
  public int runs() {
    return runs;
  }

  /** The first extent of a run, whose place is the run's. */
  public int first(final int run) {
    return members[firstOfRun[run]];
  }

  /** Extents of a run. */
  public int runLength(final int run) {
    return firstOfRun[run + 1] - firstOfRun[run];
  }

  /** Bytes of a run, gaps included. */
  public int runBytes(final int run) {
    final int last = members[firstOfRun[run + 1] - 1];
    return places[last] + extents.length(last) - places[first(run)];
  }

  /** Gives the extents of some runs, in order. */
  public void forEach(final int firstRun, final int endRun, final IntConsumer extent) {
    for (int i = firstOfRun[firstRun]; i < firstOfRun[endRun]; i++) {
      extent.accept(members[i]);
    }
  }
}
