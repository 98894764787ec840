package io.zerohop.device;

import java.time.Duration;
import java.util.Objects;
import java.util.function.BooleanSupplier;

/**
 * A 32-bit word with a growing epoch, in memory that several processes may map. Epochs compare
 * cyclically ("at least": the signed difference is not negative) and the word is never reset, so a
 * slot can be used again safely.
 *
 * <p>Layout, {@link #BYTES} bytes, aligned:
 *
 * <pre>
 *  0        4        8
 *  | epoch  | abort  |
 * </pre>
 *
 * The second word is 0 while waits may go on; any other value is the reason that ends them.
 *
 * <p>Memory order: {@link #raise} is a release, {@link #epoch} and a successful {@link #await} are
 * an acquire, across processes. Thread safe. A signal does not own its segment.
 */
public interface Signal {

  /** Bytes that a signal occupies, and its alignment. */
  int BYTES = 8;

  /** The current epoch (acquire). */
  int epoch();

  /** Whether the current epoch is at least {@code epoch} (acquire). */
  default boolean reached(final int epoch) {
    return atLeast(epoch(), epoch);
  }

  /**
   * Sets the epoch (release) and wakes waiters in every process. Epochs must grow; raising to one
   * that was already reached is a no-op.
   */
  void raise(int epoch);

  /**
   * Ends all present and future waits of every process with this reason; 0 lets them go on again.
   */
  void abort(int reason);

  /**
   * Wakes who waits for it on the host. To be called when a device has raised it, which wakes
   * nobody; waiters would see it some milliseconds later.
   */
  default void wake() {}

  /** The abort word; 0 when not aborted (acquire). */
  int aborted();

  /**
   * Waits until the epoch is at least {@code epoch}. An epoch that was reached counts even if the
   * signal was aborted. An interrupt of the thread counts as cancellation and stays set.
   *
   * @param limit the longest wait; a wait that is over the limit throws even if nobody aborts it
   * @param cancelled asked at least every 10 ms; true ends this wait alone
   * @throws WaitException (RETRY) on time-out, abort or cancellation
   */
  void await(int epoch, Duration limit, BooleanSupplier cancelled);

  /** Cyclic comparison of two epochs. */
  static boolean atLeast(final int current, final int wanted) {
    return current - wanted >= 0;
  }

  /** An epoch that a signal is to have: to wait for, or to raise it to. */
  record SignalEpoch(Signal signal, int epoch) {
    /** Refuses null. */
    public SignalEpoch {
      Objects.requireNonNull(signal, "signal");
    }
  }
}
