package io.zerohop.device.cuda;

import io.zerohop.device.CopyBatch;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.ArrayList;
import java.util.List;

/**
 * Copies as three columns outside the heap, as the kernel reads them. Large copies are kept apart:
 * they go to the copy engines, unless the stream cannot use them. Addresses are GPU memory, own or
 * mapped, or pinned host memory; nobody checks them, and a wrong one ends the executor.
 */
final class CudaCopyBatch implements CopyBatch {
  /**
   * From here on copies go to the copy engines. They are 6 % faster on one block alone, but slower
   * when four GPUs read 64 MiB of each other at once (docs/gpu.md), which is what shuffles do.
   */
  static final long ENGINE_BYTES = 128L << 20;

  private static final int FIRST_CAPACITY = 256;
  private static final int MAX_COPIES = Integer.MAX_VALUE / Long.BYTES / 2;

  private ByteBuffer sources = column(FIRST_CAPACITY, Long.BYTES);
  private ByteBuffer destinations = column(FIRST_CAPACITY, Long.BYTES);
  private ByteBuffer lengths = column(FIRST_CAPACITY, Integer.BYTES);
  private int small;
  private final List<EngineCopy> large = new ArrayList<>();
  private long bytes;

  /** A copy for the copy engine. */
  record EngineCopy(long source, long destination, long length) {}

  private static ByteBuffer column(final int rows, final int width) {
    return ByteBuffer.allocateDirect(rows * width).order(ByteOrder.nativeOrder());
  }

  @Override
  public void add(final long sourceAddress, final long destinationAddress, final long length) {
    CopyBatch.check(sourceAddress, destinationAddress, length);
    if (length == 0) {
      return;
    }
    if (length >= ENGINE_BYTES) {
      large.add(new EngineCopy(sourceAddress, destinationAddress, length));
    } else {
      addSmall(sourceAddress, destinationAddress, (int) length);
    }
    bytes += length;
  }

  @Override
  public void addByEngine(
      final long sourceAddress, final long destinationAddress, final long length) {
    CopyBatch.check(sourceAddress, destinationAddress, length);
    if (length > 0) {
      large.add(new EngineCopy(sourceAddress, destinationAddress, length));
      bytes += length;
    }
  }

  private void addSmall(final long source, final long destination, final int length) {
    if (small * Long.BYTES == sources.capacity()) {
      grow();
    }
    sources.putLong(small * Long.BYTES, source);
    destinations.putLong(small * Long.BYTES, destination);
    lengths.putInt(small * Integer.BYTES, length);
    small++;
  }

  private void grow() {
    if (small == MAX_COPIES) {
      throw new IllegalStateException("a batch holds at most " + MAX_COPIES + " copies");
    }
    final int rows = (int) Math.min(MAX_COPIES, 2L * small);
    sources = grown(sources, rows, Long.BYTES);
    destinations = grown(destinations, rows, Long.BYTES);
    lengths = grown(lengths, rows, Integer.BYTES);
  }

  private ByteBuffer grown(final ByteBuffer column, final int rows, final int width) {
    return column(rows, width).put(0, column, 0, small * width);
  }

  @Override
  public int size() {
    return small + large.size();
  }

  @Override
  public long bytes() {
    return bytes;
  }

  @Override
  public void clear() {
    small = 0;
    large.clear();
    bytes = 0;
  }

  /** Copies for the kernel. */
  int small() {
    return small;
  }

  /** Copies for the engines. */
  List<EngineCopy> large() {
    return large;
  }

  /** Makes the large copies small ones, in pieces, for a stream that must not use the engines. */
  void dissolveLarge() {
    final long piece = ENGINE_BYTES / 4;
    for (final EngineCopy copy : large) {
      for (long at = 0; at < copy.length; at += piece) {
        final int length = (int) Math.min(piece, copy.length - at);
        addSmall(copy.source + at, copy.destination + at, length);
      }
    }
    large.clear();
  }

  int length(final int copy) {
    return lengths.getInt(copy * Integer.BYTES);
  }

  /**
   * Writes rows of the columns one behind the other: all sources, all destinations, all lengths.
   */
  void write(final int first, final int count, final ByteBuffer to, final int at) {
    final int longs = count * Long.BYTES;
    to.put(at, sources, first * Long.BYTES, longs);
    to.put(at + longs, destinations, first * Long.BYTES, longs);
    to.put(at + 2 * longs, lengths, first * Integer.BYTES, count * Integer.BYTES);
  }

  /**
   * Cuts a list of copies into ranges of about the same cost, one for each warp of a launch. A
   * range begins at a copy, or inside one; {@code struct RangeStart} of launch.cuh.
   */
  static final class RangeCutter {
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
}
