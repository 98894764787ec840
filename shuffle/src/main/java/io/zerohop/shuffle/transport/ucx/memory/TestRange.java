package io.zerohop.shuffle.transport.ucx.memory;

import io.zerohop.shuffle.pool.Tier;
import io.zerohop.shuffle.transport.remote.memory.Slab;
import io.zerohop.shuffle.transport.ucx.engine.UcxEngine;
import io.zerohop.shuffle.transport.ucx.engine.UcxMemory;
import java.util.function.Supplier;

/**
 * Memory that peers read to learn whether and how fast they can, and that this executor reads
 * theirs into; what is in it does not matter. Made when it is first needed. Thread safe; owns the
 * memory.
 */
public final class TestRange implements AutoCloseable {
  /** Bytes of it. A get takes some 10 us besides, so that the rate comes out a little low. */
  public static final long BYTES = 1 << 20;

  private final UcxEngine engine;
  private final Tier kind;
  private final Supplier<Memory> allocator;
  private Memory memory;
  private UcxMemory registered;
  private boolean closed;

  /** {@link #BYTES} of memory, and what gives it back. */
  public record Memory(long address, Runnable free) {}

  public TestRange(final UcxEngine engine, final Tier kind, final Supplier<Memory> allocator) {
    this.engine = engine;
    this.kind = kind;
    this.allocator = allocator;
  }

  private synchronized Memory memory() {
    if (closed) {
      throw new IllegalStateException("this executor is shutting down");
    }
    if (memory == null) {
      memory = allocator.get();
    }
    return memory;
  }

  /** What UCX knows it by. */
  public synchronized UcxMemory registered() {
    if (registered == null) {
      registered = engine.register(kind, memory().address(), BYTES);
    }
    return registered;
  }

  public long address() {
    return memory().address();
  }

  public long bytes() {
    return BYTES;
  }

  /** It as a place to read something into. */
  public Slab slab() {
    return kind == Tier.DEVICE
        ? new GpuSlab(address(), registered(), () -> {})
        : new Slab(address(), () -> {});
  }

  /** Frees it; the engine must have ended, so that nothing reads or writes it. Idempotent. */
  @Override
  public synchronized void close() {
    closed = true;
    if (registered != null) {
      registered.close();
      registered = null;
    }
    if (memory != null) {
      memory.free().run();
      memory = null;
    }
  }
}
