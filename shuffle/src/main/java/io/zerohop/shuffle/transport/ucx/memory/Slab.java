package io.zerohop.shuffle.transport.ucx.memory;

import io.zerohop.shuffle.transport.ucx.engine.UcxMemory;
import java.util.concurrent.atomic.AtomicInteger;

/**
 * Memory that bytes of other nodes are received in, or small ones sent from, shared by many blocks:
 * made with one reference that is the maker's, given back when the last one is dropped. Thread
 * safe; the bytes are the holders' to order.
 */
public final class Slab {
  private final long address;
  private final UcxMemory gpu;
  private final Runnable giveBack;
  private final AtomicInteger references = new AtomicInteger(1);

  /**
   * @param gpu what UCX knows GPU memory by; null for host memory, and for what it does not know
   * @param giveBack run once, by whoever drops the last reference
   */
  Slab(final long address, final UcxMemory gpu, final Runnable giveBack) {
    this.address = address;
    this.gpu = gpu;
    this.giveBack = giveBack;
  }

  public long address() {
    return address;
  }

  /** What UCX has to be told of with each request that is received here; null as above. */
  public UcxMemory gpu() {
    return gpu;
  }

  public void retain() {
    if (references.getAndUpdate(count -> count == 0 ? 0 : count + 1) == 0) {
      throw new IllegalStateException("memory is used that was given back");
    }
  }

  public void release() {
    if (references.decrementAndGet() == 0) {
      giveBack.run();
    }
  }
}
