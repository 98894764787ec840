package io.zerohop.device.posix;

import java.time.Duration;
import java.util.function.BooleanSupplier;

/** A point in time by a monotonic clock. Immutable. Limits beyond 100 years count as that. */
public final class Deadline {
  private static final Duration LONGEST = Duration.ofDays(36_500);

  private final Clock clock;
  private final long nanos;

  private Deadline(final Clock clock, final Duration limit) {
    this.clock = clock;
    this.nanos = clock.in(limit);
  }

  /**
   * The point {@code limit} from now by the system's clock: for waits that end by what a thread,
   * the kernel or a GPU does, which another clock would not hasten. A negative limit is none.
   */
  public static Deadline in(final Duration limit) {
    return in(Clock.system(), limit);
  }

  /** The point {@code limit} from now by a clock; a negative limit is none. */
  public static Deadline in(final Clock clock, final Duration limit) {
    return new Deadline(clock, limit);
  }

  /** The same limit within what a deadline can be. */
  static Duration bounded(final Duration limit) {
    return limit.isNegative() ? Duration.ZERO : limit.compareTo(LONGEST) > 0 ? LONGEST : limit;
  }

  /** Nanoseconds left; 0 when over. */
  public long remainingNanos() {
    return Math.max(0, clock.left(nanos));
  }

  /** Milliseconds left, rounded up, for calls that count in those; 0 when over. */
  public int remainingMillis() {
    return (int) Math.min(Integer.MAX_VALUE, (remainingNanos() + 999_999) / 1_000_000);
  }

  public boolean isOver() {
    return remainingNanos() == 0;
  }

  /** A wait that may end early, such as {@link Thread#join(long)}. */
  @FunctionalInterface
  public interface Wait {

    /**
     * Waits.
     *
     * @param millis at most; never 0, which some take for no limit
     */
    void forMillis(long millis) throws InterruptedException;
  }

  /**
   * Waits until it is so or this is over, also if the thread is interrupted, which it is again
   * afterwards. For those who free something behind it.
   *
   * @return whether it is so
   */
  public boolean await(final BooleanSupplier done, final Wait wait) {
    boolean interrupted = false;
    while (!done.getAsBoolean() && !isOver()) {
      try {
        wait.forMillis(Math.max(1, remainingMillis()));
      } catch (final InterruptedException e) {
        interrupted = true;
      }
    }
    if (interrupted) {
      Thread.currentThread().interrupt();
    }
    return done.getAsBoolean();
  }
}
