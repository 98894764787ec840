package io.zerohop.spark.report;

import java.time.Duration;

/**
 * Limits the rate of an executor's reports. A long report delays the next one by as many intervals
 * as it was long. Reports of an idle executor may come in bursts, at the same average rate. All
 * times are readings of {@link System#nanoTime}. Not thread safe.
 */
final class SendRate {
  /** Characters that an executor may send in an interval: they all end up in the event log. */
  static final int INTERVAL_CHARS = 4096;

  private final double most;
  private final long nanos;
  private double left;
  private long last;
  private long due;

  /**
   * @param most reports in a burst
   * @param interval between reports; earns another one at once
   * @param now when this begins
   */
  SendRate(final int most, final Duration interval, final long now) {
    this.most = most;
    this.nanos = interval.toNanos();
    this.left = most;
    this.last = now;
    this.due = now;
  }

  /** Takes a report at once, if there is one left. */
  boolean take(final long now) {
    earn(now);
    if (left < 1) {
      return false;
    }
    left--;
    return true;
  }

  private void earn(final long now) {
    left = Math.min(most, left + (double) (now - last) / nanos);
    last = now;
  }

  /** Returns whether the report of an interval may be sent. */
  boolean isDue(final long now) {
    return now - due >= 0;
  }

  /** A report was sent. */
  void sent(final int chars, final long now) {
    earn(now);
    due = now + nanos * (chars / INTERVAL_CHARS);
    left -= (double) chars / INTERVAL_CHARS; // Below 0 it takes as long until one is left again.
  }
}
