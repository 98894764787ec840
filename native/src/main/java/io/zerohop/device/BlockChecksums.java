package io.zerohop.device;

import java.time.Duration;
import java.util.Arrays;
import java.util.function.IntToLongFunction;
import org.agrona.UnsafeAccess;

/**
 * The CRC32C of each of many blocks in a device's memory, made by the device: what {@link
 * CopyStream#checksums} enqueues. The device takes the blocks' bytes in pieces of a fixed size,
 * whoever they belong to, so that a large block keeps many multiprocessors busy; the host adds up
 * what the pieces of a block gave. Immutable.
 *
 * <p>The device writes 32-bit numbers: for each block the CRC of its part in the piece that it
 * begins in, then for each piece that of the block that reaches into it from the piece before, each
 * as if the rest of the block were zeroes. A CRC is linear: exclusive or adds such parts up.
 *
 * @param address of these numbers in this process; the stream's
 * @param count how many blocks there are
 */
public record BlockChecksums(long address, int count) {
  /** Bytes of a piece; crc.cuh has this, too. */
  public static final int PIECE_BYTES = 16 << 10;

  /** The most blocks of one call, whatever the device; of up to 2 GiB together. */
  public static final int MAX_BLOCKS = 1 << 18;

  /** The same where the host lists them. */
  public static final int MAX_LISTED = 1 << 16;

  private static final long MAX_BYTES = 1L << 31;

  /** Pieces that so many bytes of blocks take. */
  public static int pieces(final long bytes) {
    return Math.toIntExact((bytes + PIECE_BYTES - 1) / PIECE_BYTES);
  }

  /** Bytes of the numbers of so many blocks that have so many bytes together. */
  public static long resultBytes(final int count, final long bytes) {
    return Integer.BYTES * ((long) count + pieces(bytes));
  }

  /**
   * Has a device sum up blocks that lie anywhere, and waits for it.
   *
   * @param addresses of any number of blocks
   * @param lengths of each, up to 2 GiB
   * @param limit of each submission
   * @return 0 for one without bytes
   */
  public static int[] of(
      final CopyStream by, final long[] addresses, final long[] lengths, final Duration limit) {
    final int[] values = new int[addresses.length];
    for (int first = 0; first < values.length; ) {
      final long[] starts = starts(lengths, first);
      final int count = starts.length - 1;
      if (starts[count] > 0) {
        final BlockChecksums sums =
            by.checksums(Arrays.copyOfRange(addresses, first, first + count), starts);
        by.synchronize(limit);
        System.arraycopy(sums.values(i -> starts[i]), 0, values, first, count);
      }
      first += count;
    }
    for (int i = 0; i < values.length; i++) {
      values[i] = lengths[i] == 0 ? 0 : values[i];
    }
    return values;
  }

  /** Where blocks begin, from one on up to what one submission takes. */
  private static long[] starts(final long[] lengths, final int first) {
    final long[] starts = new long[Math.min(MAX_LISTED, lengths.length - first) + 1];
    for (int i = 1; i < starts.length; i++) {
      starts[i] = starts[i - 1] + lengths[first + i - 1];
      if (starts[i] > MAX_BYTES && i > 1) {
        return Arrays.copyOf(starts, i);
      }
    }
    return starts;
  }

  /**
   * The checksums, once the stream was waited for, and before anything else is submitted to it.
   * That of a block without bytes is undefined.
   *
   * @param starts where each block begins, and where the last one ends: what the device was given
   */
  public int[] values(final IntToLongFunction starts) {
    final int[] values = new int[count];
    for (int block = 0; block < count; block++) {
      int value = word(block);
      final long end = starts.applyAsLong(block + 1);
      long piece = starts.applyAsLong(block) / PIECE_BYTES + 1;
      for (; piece * PIECE_BYTES < end; piece++) {
        value ^= word(count + piece);
      }
      values[block] = value;
    }
    return values;
  }

  private int word(final long index) {
    return UnsafeAccess.UNSAFE.getInt(address + Integer.BYTES * index);
  }
}
