package io.zerohop.device.cuda;

import java.nio.ByteBuffer;

/**
 * Cuts a list of copies into ranges of about the same cost, one for each warp of a launch. A range
 * begins at a copy, or inside one; {@code struct RangeStart} of launch.cuh.
 */
final class RangeCutter {
  static final int ENTRY_BYTES = 2 * Integer.BYTES;

  /** What a copy costs beside its bytes, in bytes; measured, see docs/gpu.md. */
  static final int COPY_COST_BYTES = 256;

  /** A range that costs less would not be worth a warp. */
  static final int MIN_RANGE_BYTES = 2048;

  /** Cuts fall on multiples of this many bytes of a copy, so that few stores are cut. */
  private static final int CUT_BYTES = 16;

  private RangeCutter() {}

  /** What a list costs. */
  static long cost(final long bytes, final int copies) {
    return bytes + (long) COPY_COST_BYTES * copies;
  }

  /** The lengths of a list. */
  @FunctionalInterface
  interface Lengths {
    int of(int copy);
  }

  /**
   * Writes the starts of at most {@code wanted} ranges, and the end of the list behind them.
   *
   * @param copies how many copies, at least one
   * @param cost {@link #cost} of them all
   * @param to gets one entry more than there are ranges, from {@code at} on
   * @return how many ranges there are; none of them is empty
   */
  static int cut(
      final Lengths lengths,
      final int copies,
      final long cost,
      final int wanted,
      final ByteBuffer to,
      final int at) {
    int ranges = put(to, at, 0, 0, 0);
    int lastCopy = 0;
    int lastOffset = 0;
    long before = 0;
    int cut = 1;
    long next = cut < wanted ? cost / wanted : Long.MAX_VALUE;
    for (int copy = 0; copy < copies; copy++) {
      final int length = lengths.of(copy);
      final long behind = before + length + COPY_COST_BYTES;
      while (next < behind) {
        final int inside = (int) Math.min(next - before, length) / CUT_BYTES * CUT_BYTES;
        final boolean within = next - before < length;
        final int startCopy = within ? copy : copy + 1;
        final int startOffset = within ? inside : 0;
        final boolean later =
            startCopy > lastCopy || startCopy == lastCopy && startOffset > lastOffset;
        if (later && startCopy < copies) {
          ranges = put(to, at, ranges, startCopy, startOffset);
          lastCopy = startCopy;
          lastOffset = startOffset;
        }
        cut++;
        next = cut < wanted ? cost * cut / wanted : Long.MAX_VALUE;
      }
      before = behind;
    }
    put(to, at, ranges, copies, 0);
    return ranges;
  }

  private static int put(
      final ByteBuffer to, final int at, final int range, final int copy, final int offset) {
    to.putInt(at + range * ENTRY_BYTES, copy);
    to.putInt(at + range * ENTRY_BYTES + Integer.BYTES, offset);
    return range + 1;
  }
}
