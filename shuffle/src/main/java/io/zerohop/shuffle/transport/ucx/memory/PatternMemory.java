package io.zerohop.shuffle.transport.ucx.memory;

import io.zerohop.device.CopyBatch;
import io.zerohop.device.CopyStream;
import io.zerohop.device.Device;
import io.zerohop.device.HostBuffer;
import io.zerohop.device.Segment;
import io.zerohop.device.Undo;
import java.nio.ByteOrder;
import java.time.Duration;
import org.agrona.concurrent.UnsafeBuffer;
import org.jspecify.annotations.Nullable;

/**
 * Memory of the host, or a segment of a GPU. Its bytes follow from a seed, so that a reader can
 * verify them. A GPU's bytes are written and compared by copies of the GPU. Owns the memory, not
 * the device; not thread safe.
 */
public final class PatternMemory implements AutoCloseable {
  /** Bytes behind what a get should write that it must leave as they are, where there are some. */
  static final int GUARD_BYTES = 64;

  private static final byte POISON = (byte) 0xa5;
  private static final int CHUNK_BYTES = 16 << 20;
  private static final Duration LIMIT = Duration.ofSeconds(30);

  private final long address;
  private final long bytes;
  private final Runnable free;

  /** Between a GPU and this process; absent where this process reaches the memory by itself. */
  private final @Nullable Staging staging;

  /** Pinned memory, and what copies to it and from it. */
  private record Staging(Device device, HostBuffer buffer, CopyStream stream) {
    void copy(final long from, final long to, final long bytes) {
      final CopyBatch batch = stream.newBatch();
      batch.add(from, to, bytes);
      stream.submit(batch);
      stream.synchronize(LIMIT);
    }
  }

  /** An action on a piece of the memory, which begins at so many bytes from its start. */
  private interface Piece {
    boolean seen(UnsafeBuffer piece, long offset, int bytes);
  }

  private PatternMemory(
      final long address, final long bytes, final Runnable free, final @Nullable Staging staging) {
    this.address = address;
    this.bytes = bytes;
    this.free = free;
    this.staging = staging;
  }

  /**
   * Allocates a segment, as a pool does.
   *
   * @param bytes at least so many
   * @throws io.zerohop.device.ZerohopException if there is not that much
   */
  public static PatternMemory segment(final Device device, final long bytes) {
    final Segment segment = device.allocate(bytes);
    try (Undo undo = new Undo(segment)) {
      final Staging staging = device.hostAccessible() ? null : staging(device);
      return undo.keep(
          new PatternMemory(segment.address(), segment.bytes(), segment::close, staging));
    }
  }

  /**
   * Allocates host memory that the device reaches, as receive buffers are.
   *
   * @param bytes at least so many
   * @throws io.zerohop.device.ZerohopException if there is not that much
   */
  public static PatternMemory hostBuffer(final Device device, final long bytes) {
    final HostBuffer buffer = device.hostBuffer(bytes);
    return new PatternMemory(buffer.address(), buffer.bytes(), buffer::close, null);
  }

  private static Staging staging(final Device device) {
    final HostBuffer buffer = device.hostBuffer(CHUNK_BYTES);
    try (Undo undo = new Undo(buffer)) {
      return undo.keep(new Staging(device, buffer, device.openStream("test reads")));
    }
  }

  public long address() {
    return address;
  }

  public long bytes() {
    return bytes;
  }

  /** The byte at a place of memory with that seed. */
  public static byte at(final long seed, final long place) {
    return (byte) (word(seed, place >> 3) >>> ((place & 7) << 3));
  }

  /** A bijection of each seed's numbers (the finalizer of SplitMix64). */
  private static long word(final long seed, final long number) {
    long mixed = seed + number * 0x9e3779b97f4a7c15L;
    mixed = (mixed ^ mixed >>> 30) * 0xbf58476d1ce4e5b9L;
    mixed = (mixed ^ mixed >>> 27) * 0x94d049bb133111ebL;
    return mixed ^ mixed >>> 31;
  }

  /** Writes all of it. */
  public void fill(final long seed) {
    each(
        bytes,
        true,
        (piece, offset, bytes) -> {
          for (int i = 0; i < bytes; i += Long.BYTES) { // It is whole pages.
            piece.putLong(i, word(seed, offset + i >> 3), ByteOrder.LITTLE_ENDIAN);
          }
          return true;
        });
  }

  /** Overwrites so many bytes from its beginning, and the guard, with what no get brings. */
  public void poison(final long bytes) {
    each(
        Math.min(bytes(), bytes + GUARD_BYTES),
        true,
        (piece, offset, length) -> {
          piece.setMemory(0, length, POISON);
          return true;
        });
  }

  /**
   * Compares so many bytes from its beginning with those at a place of memory with that seed, and
   * whether the guard behind them is as it was.
   *
   * @return the first place that is wrong; -1 if there is none
   */
  public long firstWrong(final long seed, final long place, final long bytes) {
    if (staging != null) {
      staging.device().flushAdapterWrites();
    }
    final long[] wrong = {-1};
    each(
        Math.min(bytes(), bytes + GUARD_BYTES),
        false,
        (piece, offset, length) -> {
          for (int i = 0; i < length; i++) {
            final long at = offset + i;
            if (at + Long.BYTES <= bytes && isRight(piece, i, seed, place + at)) {
              i += Long.BYTES - 1;
              continue;
            }
            final byte expected = at < bytes ? at(seed, place + at) : POISON;
            if (piece.getByte(i) != expected) {
              wrong[0] = at;
              return false;
            }
          }
          return true;
        });
    return wrong[0];
  }

  /**
   * Returns whether eight bytes that begin at a multiple of eight are right: faster than one by
   * one.
   */
  private static boolean isRight(
      final UnsafeBuffer piece, final int index, final long seed, final long place) {
    return (place & 7) == 0
        && index + Long.BYTES <= piece.capacity()
        && piece.getLong(index, ByteOrder.LITTLE_ENDIAN) == word(seed, place >> 3);
  }

  /**
   * Visits the first bytes in pieces, where this process reaches them.
   *
   * @param writes whether they are written, and not read
   */
  private void each(final long bytes, final boolean writes, final Piece work) {
    boolean goOn = true;
    for (long offset = 0; goOn && offset < bytes; offset += CHUNK_BYTES) {
      final int length = (int) Math.min(CHUNK_BYTES, bytes - offset);
      final long place = address + offset;
      final long near = staging == null ? place : staging.buffer().address();
      if (staging != null && !writes) {
        staging.copy(place, near, length);
      }
      goOn = work.seen(new UnsafeBuffer(near, length), offset, length);
      if (staging != null && writes) {
        staging.copy(near, place, length);
      }
    }
  }

  @Override
  public void close() {
    if (staging != null) {
      staging.stream().close();
      staging.buffer().close();
    }
    free.run();
  }
}
