package io.zerohop.shuffle.fetch;

import io.zerohop.device.WaitException;
import io.zerohop.device.posix.Clock;
import java.time.Duration;
import java.util.concurrent.TimeUnit;
import java.util.function.BooleanSupplier;

/**
 * The budget of receive buffers, shared by all fetchers of an executor. Reservations are all or
 * nothing. Thread safe.
 *
 * <p>A fetcher waits here only while it holds no reservation, and for a limited time; then it gets
 * what it asked for even if that exceeds the budget. So tasks that read two shuffles at once, each
 * holding memory that the other waits for, get on, and the excess is at most one block a fetcher.
 */
public final class ReceiveBudget {
  private static final long SLICE_NANOS = TimeUnit.MILLISECONDS.toNanos(10);

  private final long limit;
  private final Clock clock;
  private long reserved;
  private long waitedNanos;

  /**
   * @param limit most bytes that may be reserved without waiting
   * @param clock by which patience is measured
   */
  public ReceiveBudget(final long limit, final Clock clock) {
    this.limit = limit;
    this.clock = clock;
  }

  /** Reserves if there is room; a request larger than the budget fits when nothing is reserved. */
  synchronized boolean tryReserve(final long bytes) {
    if (reserved != 0 && reserved + bytes > limit) {
      return false;
    }
    reserved += bytes;
    return true;
  }

  /**
   * Reserves as soon as there is room, and when the patience is over in any case.
   *
   * @throws WaitException if cancelled; nothing is reserved then
   */
  synchronized void reserve(
      final long bytes, final Duration patience, final BooleanSupplier cancelled) {
    if (tryReserve(bytes)) {
      return;
    }
    final long start = clock.nanos();
    try {
      await(bytes, clock.in(patience), cancelled);
    } finally {
      waitedNanos += clock.since(start);
    }
  }

  private void await(final long bytes, final long deadline, final BooleanSupplier cancelled) {
    while (!tryReserve(bytes)) {
      final long left = clock.left(deadline);
      if (left <= 0) {
        reserved += bytes;
        return;
      }
      if (cancelled.getAsBoolean()) {
        throw new WaitException(
            WaitException.Reason.CANCELLED, "cancelled while waiting for receive buffers");
      }
      try {
        clock.await(this, Math.min(SLICE_NANOS, left));
      } catch (final InterruptedException e) {
        Thread.currentThread().interrupt();
        throw new WaitException(
            WaitException.Reason.CANCELLED, "interrupted while waiting for receive buffers");
      }
    }
  }

  /** Gives a reservation back. */
  synchronized void release(final long bytes) {
    reserved -= bytes;
    notifyAll();
  }

  /** Most bytes that may be reserved without waiting. */
  long limit() {
    return limit;
  }

  /** Time that all callers of {@link #reserve} together have waited. */
  public synchronized long waitedNanos() {
    return waitedNanos;
  }

  /** Bytes that are reserved. */
  public synchronized long reserved() {
    return reserved;
  }
}
