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
 * Host memory that the GPU reaches, in which bytes of the host wait to be gathered with the rest.
 * For one thread; owns its buffers.
 */
final class HostStaging implements AutoCloseable {
  private static final long BUFFER_BYTES = 8L << 20;
  private static final int ALIGNMENT = 256;
  private static final int STEP_BYTES = 64 << 10;

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
   * Reads bytes of a stream; returns where they are now.
   *
   * @throws EOFException if it ends before
   */
  long read(final InputStream in, final long bytes) throws IOException {
    final long at = take(bytes);
    final byte[] step = new byte[(int) Math.min(STEP_BYTES, bytes)];
    for (long done = 0; done < bytes; ) {
      final int read = in.read(step, 0, (int) Math.min(step.length, bytes - done));
      if (read < 0) {
        throw new EOFException("a table is cut off after " + done + " of " + bytes + " bytes");
      }
      Platform.copyMemory(step, Platform.BYTE_ARRAY_OFFSET, null, at + done, read);
      done += read;
    }
    return at;
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
