package io.zerohop.device;

import java.util.function.IntToLongFunction;
import java.util.function.LongFunction;
import org.agrona.UnsafeAccess;

/**
 * The CRC32C of each of many blocks that lie one behind the other in a device's memory, made by the
 * device. It takes the blocks' bytes in pieces of a fixed size, whoever they belong to, so that a
 * large block keeps many multiprocessors busy; the host adds up what the pieces of a block gave.
 * For one thread; owns the memory that the device writes to.
 *
 * <p>In that memory are 32-bit numbers: for each block the CRC of its part in the piece that it
 * begins in, then for each piece that of the block that reaches into it from the piece before, each
 * as if the rest of the block were zeroes. A CRC is linear: exclusive or adds such parts up.
 */
public final class BlockChecksums implements AutoCloseable {
  /** Bytes of a piece; crc.cuh has this, too. */
  public static final int PIECE_BYTES = 16 << 10;

  private final LongFunction<HostBuffer> memory;
  private HostBuffer results;
  private int count;

  /**
   * @param memory gives a buffer of at least so many bytes that the device can write to
   */
  public BlockChecksums(final LongFunction<HostBuffer> memory) {
    this.memory = memory;
  }

  /** Pieces that so many bytes of blocks take. */
  public static int pieces(final long bytes) {
    return Math.toIntExact((bytes + PIECE_BYTES - 1) / PIECE_BYTES);
  }

  /**
   * Enqueues the work.
   *
   * @param blocks address of the first block
   * @param offsets address, for the device, of {@code count + 1} 64-bit numbers: where each block
   *     begins, counted from the first, and where the last one ends
   * @param bytes of all blocks; what lies behind is not looked at
   */
  public void submit(
      final CopyStream by,
      final long blocks,
      final long offsets,
      final int count,
      final long bytes) {
    final long needed = Integer.BYTES * ((long) count + pieces(bytes));
    if (results == null || results.bytes() < needed) {
      close();
      results = memory.apply(needed);
    }
    this.count = count;
    by.submitChecksums(blocks, offsets, count, bytes, results.address());
  }

  /**
   * The checksums, once the stream was waited for. That of a block without bytes is undefined.
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
    return UnsafeAccess.UNSAFE.getInt(results.address() + Integer.BYTES * index);
  }

  /** Frees the memory; nothing may be under way. The next submission takes some again. */
  @Override
  public void close() {
    if (results != null) {
      results.close();
      results = null;
    }
  }
}
