package io.zerohop.shuffle.transport.ucx;

import io.zerohop.device.HostBuffer;
import java.util.function.LongFunction;

/**
 * Memory that peers read to learn how fast they can. Its pages are fresh; made when the first peer
 * asks. Thread safe; owns the memory.
 */
final class TestRange implements AutoCloseable {
  /** Long enough that the time for one request does not count. */
  static final long BYTES = 16 << 20;

  private final UcxEngine engine;
  private final LongFunction<HostBuffer> allocator;
  private HostBuffer buffer;
  private UcxMemory memory;
  private boolean closed;

  TestRange(final UcxEngine engine, final LongFunction<HostBuffer> allocator) {
    this.engine = engine;
    this.allocator = allocator;
  }

  private synchronized HostBuffer buffer() {
    if (closed) {
      throw new IllegalStateException("this executor is shutting down");
    }
    if (buffer == null) {
      buffer = allocator.apply(BYTES);
    }
    return buffer;
  }

  synchronized byte[] key() {
    if (memory == null) {
      memory = engine.register(buffer().address(), BYTES);
    }
    return memory.key();
  }

  long address() {
    return buffer().address();
  }

  long bytes() {
    return BYTES;
  }

  /** Frees it; the engine must have ended, so that no message reads it. Idempotent. */
  @Override
  public synchronized void close() {
    closed = true;
    if (memory != null) {
      memory.close();
      memory = null;
    }
    if (buffer != null) {
      buffer.close();
      buffer = null;
    }
  }
}
