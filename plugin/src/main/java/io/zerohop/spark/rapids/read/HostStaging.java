package io.zerohop.spark.rapids.read;

import io.zerohop.device.HostBuffer;
import java.io.EOFException;
import java.io.IOException;
import java.io.InputStream;
import java.util.ArrayList;
import java.util.List;
import java.util.function.LongFunction;
import org.apache.spark.unsafe.Platform;

/**
 * Host memory that the GPU reaches, in which bytes from the host wait to be gathered with the
 * others. For one thread; owns its buffers.
 */
final class HostStaging implements AutoCloseable {
  private static final long BUFFER_BYTES = 8L << 20;
  private static final int ALIGNMENT = 256;
  private static final int STEP_BYTES = 64 << 10;

  /** Of one table, how much is taken on the word of its header: more has to come first. */
  private static final long BELIEVED_BYTES = 64L << 20;

  /** The factor by which the next estimate may exceed the bytes that have arrived. */
  private static final long GROWTH = 4;

  private final LongFunction<HostBuffer> allocator;
  private final List<HostBuffer> buffers = new ArrayList<>();
  private long next;
  private long end;

  /**
   * @param allocator gives a buffer of at least so many bytes
   */
  HostStaging(final LongFunction<HostBuffer> allocator) {
    this.allocator = allocator;
  }

  /** Copies bytes of this process; returns where they are now. */
  long copy(final long address, final long bytes) {
    final long at = take(bytes);
    Platform.copyMemory(null, address, null, at, bytes);
    return at;
  }

  /**
   * Reads bytes of a stream; returns where they are now. Takes no more memory than a few times what
   * comes, whatever a header has said.
   *
   * @throws EOFException if it ends before
   */
  long read(final InputStream in, final long bytes) throws IOException {
    if (bytes > BELIEVED_BYTES) {
      return readLong(in, bytes);
    }
    final long at = take(bytes);
    fill(in, at, 0, bytes, bytes);
    return at;
  }

  /** Into a buffer of its own, which grows with what has come. */
  private long readLong(final InputStream in, final long bytes) throws IOException {
    long room = BELIEVED_BYTES;
    HostBuffer buffer = allocator.apply(room);
    boolean done = false;
    try {
      fill(in, buffer.address(), 0, room, bytes);
      while (room < bytes) {
        final long there = room;
        room = Math.min(bytes, GROWTH * there);
        final HostBuffer larger = allocator.apply(room);
        Platform.copyMemory(null, buffer.address(), null, larger.address(), there);
        buffer.close();
        buffer = larger;
        fill(in, buffer.address(), there, room, bytes);
      }
      buffers.add(buffer);
      done = true;
      return buffer.address();
    } finally {
      if (!done) {
        buffer.close();
      }
    }
  }

  /** Reads what belongs from one place behind an address to another. */
  private static void fill(
      final InputStream in, final long at, final long from, final long to, final long bytes)
      throws IOException {
    final byte[] step = new byte[(int) Math.min(STEP_BYTES, to - from)];
    for (long done = from; done < to; ) {
      final int read = in.read(step, 0, (int) Math.min(step.length, to - done));
      if (read < 0) {
        throw new EOFException("a table ends after " + done + " of " + bytes + " bytes");
      }
      Platform.copyMemory(step, Platform.BYTE_ARRAY_OFFSET, null, at + done, read);
      done += read;
    }
  }

  /** Bytes of its buffers. */
  long bytes() {
    return buffers.stream().mapToLong(HostBuffer::bytes).sum();
  }

  private long take(final long bytes) {
    if (end - next < bytes) {
      final HostBuffer buffer = allocator.apply(Math.max(BUFFER_BYTES, bytes));
      buffers.add(buffer);
      next = buffer.address();
      end = next + buffer.bytes();
    }
    final long at = next;
    next = (next + bytes + ALIGNMENT - 1) & -ALIGNMENT;
    return at;
  }

  /** Frees everything; no copy may be under way. */
  @Override
  public void close() {
    buffers.forEach(HostBuffer::close);
    buffers.clear();
    next = 0;
    end = 0;
  }
}
