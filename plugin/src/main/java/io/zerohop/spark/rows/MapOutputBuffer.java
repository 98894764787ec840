package io.zerohop.spark.rows;

import io.zerohop.spark.spillfiles.OverflowingOutput;
import java.io.IOException;
import java.io.OutputStream;

/**
 * The output of one map task while it is written: records are collected in an arena, and a full
 * arena is a batch of the output.
 *
 * <p>Belongs to one task thread. {@link #close()} frees everything that was not committed.
 */
final class MapOutputBuffer implements AutoCloseable {

  private final PartitionArena arena;
  private final OverflowingOutput output;
  private long packNanos;

  /** A new output; both are owned from now on. */
  MapOutputBuffer(final PartitionArena arena, final OverflowingOutput output) {
    this.arena = arena;
    this.output = output;
  }

  /** Reserves contiguous bytes at the end of a partition; the caller fills all of them. */
  long reserve(final int partition, final int bytes) throws IOException {
    final long at = arena.reserve(partition, bytes);
    if (at != 0) {
      return at;
    }
    flush();
    return arena.reserve(partition, bytes);
  }

  /** Appends bytes that may be cut anywhere. */
  void append(final int partition, final byte[] source, final int offset, final int length)
      throws IOException {
    int done = arena.append(partition, source, offset, length);
    while (done < length) {
      flush();
      done += arena.append(partition, source, offset + done, length - done);
    }
  }

  /** A stream that appends to a partition; closing it has no effect. */
  OutputStream stream(final int partition) {
    return new OutputStream() {
      private final byte[] single = new byte[1];

      @Override
      public void write(final int b) throws IOException {
        single[0] = (byte) b;
        append(partition, single, 0, 1);
      }

      @Override
      public void write(final byte[] bytes, final int offset, final int length) throws IOException {
        append(partition, bytes, offset, length);
      }
    };
  }

  private void flush() throws IOException {
    final long start = System.nanoTime();
    try {
      if (!pack()) {
        output.spill(arena);
        arena.reset();
      }
    } finally {
      packNanos += System.nanoTime() - start;
    }
  }

  /** Packs the arena into memory; false when that has no room. */
  private boolean pack() {
    final boolean packed = output.pack(arena);
    if (packed) {
      arena.reset();
    }
    return packed;
  }

  /**
   * Completes the output.
   *
   * @return the bytes of each partition, as stored
   */
  long[] commit() throws IOException {
    final long start = System.nanoTime();
    try {
      if (!arena.isEmpty()) {
        pack();
      }
      return output.commit(arena);
    } finally {
      packNanos += System.nanoTime() - start;
    }
  }

  /** Nanoseconds spent on packing and on files. */
  long packNanos() {
    return packNanos;
  }

  /** Bytes that went to temporary files. */
  long spilledBytes() {
    return output.spilledBytes();
  }

  @Override
  public void close() throws IOException {
    arena.close();
    output.close();
  }
}
