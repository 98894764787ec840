package io.zerohop.device.posix;

import java.time.Duration;

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
}
