package io.zerohop.shuffle.transport.ucx.memory;

import io.zerohop.shuffle.transport.remote.memory.Slab;
import io.zerohop.shuffle.transport.ucx.engine.UcxMemory;

/** GPU memory that UCX receives in, and what UCX knows it by. Thread safe. */
final class GpuSlab extends Slab {
  private final UcxMemory registered;

  /**
   * @param giveBack run once, by whoever drops the last reference
   */
  GpuSlab(final long address, final UcxMemory registered, final Runnable giveBack) {
    super(address, giveBack);
    this.registered = registered;
  }

  UcxMemory registered() {
    return registered;
  }
}
