package io.zerohop.shuffle.transport.remote.memory;

import java.util.concurrent.atomic.AtomicInteger;

/**
 * Memory that bytes of other executors are received in, or small ones sent from, shared by many
 * blocks: made with one reference that is the maker's, given back when the last one is dropped.
 * Thread safe; the bytes are the holders' to order.
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
      throw new IllegalStateException("memory is used that was given back");
    }
  }

  public final void release() {
    if (references.decrementAndGet() == 0) {
      giveBack.run();
    }
  }
}
