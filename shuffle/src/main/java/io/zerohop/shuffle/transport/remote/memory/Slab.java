package io.zerohop.shuffle.transport.remote.memory;

import java.util.concurrent.atomic.AtomicInteger;

/**
 * Memory shared by many blocks, for bytes received from other executors or small ones to be sent.
 * It starts with one reference, the creator's, and is returned when the last one is dropped. Thread
 * safe; the bytes are the holders' to order.
 */
public class Slab {
  private final long address;
  private final Runnable giveBack;
  private final AtomicInteger references = new AtomicInteger(1);

  /**
   * Memory that somebody else owns.
   *
   * @param giveBack run once, by whoever drops the last reference
   */
  public Slab(final long address, final Runnable giveBack) {
    this.address = address;
    this.giveBack = giveBack;
  }

  public final long address() {
    return address;
  }

  public final void retain() {
    if (references.getAndUpdate(count -> count == 0 ? 0 : count + 1) == 0) {
      throw new IllegalStateException("memory is used after its release");
    }
  }

  public final void release() {
    if (references.decrementAndGet() == 0) {
      giveBack.run();
    }
  }
}
