package io.zerohop.device.posix;

import java.time.Duration;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.concurrent.locks.Lock;

/**
 * The monotonic clock by which limits, periods and pauses are measured, and the waits that go by
 * it. The system's is taken where a process starts, and handed down; tests hand in one that they
 * advance. Thread safe.
 */
public interface Clock {

  /** The clock of the system; for who starts something, all others are handed theirs. */
  static Clock system() {
    return OfSystem.INSTANCE;
  }

  /** Nanoseconds since some moment; only differences mean something. */
  long nanos();

  /**
   * Waits until the monitor is notified, or so long at most. May end early, so callers look again.
   *
   * @param monitor held by the caller
   * @param nanos at most; rounded up to a millisecond
   */
  void await(Object monitor, long nanos) throws InterruptedException;

  /** Waits so long. */
  void sleep(Duration length) throws InterruptedException;

  /**
   * Waits for the outcome of what others do.
   *
   * @throws TimeoutException if there is none within the limit
   */
  <T> T get(Future<T> future, Duration limit)
      throws InterruptedException, ExecutionException, TimeoutException;

  /** Takes a lock; says whether it has, which it has not if others hold it beyond the limit. */
  boolean tryLock(Lock lock, Duration limit) throws InterruptedException;

  /** Nanoseconds since a moment that {@link #nanos} gave. */
  default long since(final long moment) {
    return nanos() - moment;
  }

  /** The moment that is so far ahead; to be compared with {@link #isOver} and {@link #left}. */
  default long in(final Duration limit) {
    return nanos() + Deadline.bounded(limit).toNanos();
  }

  /** Nanoseconds until a moment; none or negative if it has come. */
  default long left(final long moment) {
    return moment - nanos();
  }

  /** Whether a moment has come. */
  default boolean isOver(final long moment) {
    return left(moment) <= 0;
  }

  /** The system's monotonic clock. */
  final class OfSystem implements Clock {
    private static final Clock INSTANCE = new OfSystem();

    private OfSystem() {}

    @Override
    public long nanos() {
      return System.nanoTime();
    }

    /** Callers wait in a loop, as the interface asks them to. */
    @Override
    @SuppressWarnings("WaitNotInLoop")
    public void await(final Object monitor, final long nanos) throws InterruptedException {
      monitor.wait(Math.max(1, TimeUnit.NANOSECONDS.toMillis(nanos + 999_999)));
    }

    @Override
    public void sleep(final Duration length) throws InterruptedException {
      TimeUnit.NANOSECONDS.sleep(length.toNanos());
    }

    @Override
    public <T> T get(final Future<T> future, final Duration limit)
        throws InterruptedException, ExecutionException, TimeoutException {
      return future.get(limit.toNanos(), TimeUnit.NANOSECONDS);
    }

    @Override
    public boolean tryLock(final Lock lock, final Duration limit) throws InterruptedException {
      return lock.tryLock(limit.toNanos(), TimeUnit.NANOSECONDS);
    }
  }
}
