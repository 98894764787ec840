package io.zerohop.device;

import java.util.function.IntToLongFunction;
import org.agrona.UnsafeAccess;

/**
 * The CRC32C of each of many blocks that lie one behind the other in a device's memory, made by the
 * device: what {@link CopyStream#checksums} enqueues. The device takes the blocks' bytes in pieces
 * of a fixed size, whoever they belong to, so that a large block keeps many multiprocessors busy;
 * the host adds up what the pieces of a block gave. Immutable.
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

  /** Pieces that so many bytes of blocks take. */
  public static int pieces(final long bytes) {
    return Math.toIntExact((bytes + PIECE_BYTES - 1) / PIECE_BYTES);
  }

  /** Bytes of the numbers of so many blocks that have so many bytes together. */
  public static long resultBytes(final int count, final long bytes) {
    return Integer.BYTES * ((long) count + pieces(bytes));
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
