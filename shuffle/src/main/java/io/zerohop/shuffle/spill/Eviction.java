package io.zerohop.shuffle.spill;

import io.zerohop.device.posix.Clock;
import io.zerohop.shuffle.spill.Evictor.EvictionScope;
import java.util.function.LongSupplier;

/**
 * A request for GPU memory that a caller waits for. One thread waits, the spiller's moves map
 * outputs meanwhile; either may end it. Thread safe.
 */
final class Eviction {
  private final EvictionScope scope;
  private final LongSupplier missing;
  private final Clock clock;
  private boolean over;
  private boolean exhausted;

  /**
   * @param missing bytes that are still to be given back; looks for what can be, and gives it back
   * @param clock by which who waits looks again
   */
  Eviction(final EvictionScope scope, final LongSupplier missing, final Clock clock) {
    this.scope = scope;
    this.missing = missing;
    this.clock = clock;
  }

  EvictionScope scope() {
    return scope;
  }

  long missing() {
    return missing.getAsLong();
  }

  /** Nobody waits for it any more. */
  synchronized void end() {
    over = true;
    notifyAll();
  }

  /** Is to be looked at once more. */
  synchronized void again() {
    exhausted = false;
  }

  /** Nothing is left that could be moved. */
  synchronized void exhaust() {
    exhausted = true;
    notifyAll();
  }

  synchronized boolean isOver() {
    return over;
  }

  synchronized boolean isExhausted() {
    return exhausted;
  }

  /** Tells who waits that some bytes have moved. */
  synchronized void moved() {
    notifyAll();
  }

  /** Waits for news for at most so long. */
  synchronized void await(final long nanos) throws InterruptedException {
    if (!over && nanos > 0) {
      clock.await(this, nanos);
    }
  }
}
