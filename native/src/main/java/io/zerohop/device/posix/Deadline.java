package io.zerohop.device.posix;

import java.time.Duration;
import java.util.function.BooleanSupplier;

/** A point in time by the monotonic clock. Immutable. Limits beyond 100 years count as that. */
public final class Deadline {
  private static final Duration LONGEST = Duration.ofDays(36_500);

  private final long nanos;

  private Deadline(final long nanos) {
    this.nanos = nanos;
  }

  /** The point {@code limit} from now; a negative limit is none. */
  public static Deadline in(final Duration limit) {
    final Duration bounded =
        limit.isNegative() ? Duration.ZERO : limit.compareTo(LONGEST) > 0 ? LONGEST : limit;
    return new Deadline(System.nanoTime() + bounded.toNanos());
  }

  /** Nanoseconds left; 0 when over. */
  public long remainingNanos() {
    return Math.max(0, nanos - System.nanoTime());
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
