package io.zerohop.device;

import io.zerohop.device.posix.Clock;
import java.time.Duration;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.locks.Lock;
import java.util.concurrent.locks.LockSupport;

/**
 * A clock that a test advances, whose waits end when it has. One that runs goes on as the system's
 * does besides; one that stands does not. Thread safe.
 */
public final class TestClock implements Clock {
  /** How soon who waits looks again. */
  private static final long LOOK_MILLIS = 1;

  private static final int SPEED = 100;

  private static final long LIMIT_NANOS = TimeUnit.SECONDS.toNanos(30);

  private final long start = System.nanoTime();
  private final boolean runs;
  private final AtomicLong ahead = new AtomicLong();
  private final AtomicInteger waiting = new AtomicInteger();

  private TestClock(final boolean runs) {
    this.runs = runs;
  }

  /** A clock that is as fast as the system's until it is advanced. */
  public static TestClock running() {
    return new TestClock(true);
  }

  /** A clock that stands still until it is advanced. */
  public static TestClock standing() {
    return new TestClock(false);
  }

  /** Lets so much time pass at once. */
  public void advance(final Duration length) {
    ahead.addAndGet(length.toNanos());
  }

  /** Lets time fly, until the result is closed: for waits that are long, and for nothing else. */
  public Flight fly() {
    return new Flight();
  }

  /** Time that flies, a hundred times as fast. */
  public final class Flight implements AutoCloseable {
    private volatile boolean over;
    private final Thread thread = new Thread(this::fly, "test-clock");

    private Flight() {
      thread.setDaemon(true);
      thread.start();
    }

    private void fly() {
      while (!over) {
        advance(Duration.ofMillis(LOOK_MILLIS * SPEED));
        LockSupport.parkNanos(TimeUnit.MILLISECONDS.toNanos(LOOK_MILLIS));
      }
    }

    @Override
    public void close() {
      over = true;
      LockSupport.unpark(thread);
      try {
        thread.join();
      } catch (final InterruptedException e) {
        Thread.currentThread().interrupt();
      }
    }
  }

  /** Waits until some thread waits by this clock, so that what is advanced then counts for it. */
  public void awaitWaiting() throws InterruptedException {
    final long begin = System.nanoTime();
    while (waiting.get() == 0) {
      if (System.nanoTime() - begin > LIMIT_NANOS) {
        throw new AssertionError("nobody waits");
      }
      TimeUnit.MILLISECONDS.sleep(LOOK_MILLIS);
    }
  }

  @Override
  public long nanos() {
    return (runs ? System.nanoTime() : start) + ahead.get();
  }

  @Override
  public void await(final Object monitor, final long nanos) throws InterruptedException {
    waiting.incrementAndGet();
    try {
      monitor.wait(LOOK_MILLIS);
    } finally {
      waiting.decrementAndGet();
    }
  }

  @Override
  public void sleep(final Duration length) throws InterruptedException {
    final long end = in(length);
    waiting.incrementAndGet();
    try {
      do {
        TimeUnit.MILLISECONDS.sleep(LOOK_MILLIS);
      } while (!isOver(end));
    } finally {
      waiting.decrementAndGet();
    }
  }

  @Override
  public <T> T get(final Future<T> future, final Duration limit)
      throws InterruptedException, ExecutionException, TimeoutException {
    final long end = in(limit);
    waiting.incrementAndGet();
    try {
      for (; ; ) {
        final boolean last = isOver(end);
        try {
          return future.get(last ? 0 : LOOK_MILLIS, TimeUnit.MILLISECONDS);
        } catch (final TimeoutException e) {
          if (last) {
            throw e;
          }
        }
      }
    } finally {
      waiting.decrementAndGet();
    }
  }

  @Override
  public boolean tryLock(final Lock lock, final Duration limit) throws InterruptedException {
    final long end = in(limit);
    waiting.incrementAndGet();
    try {
      boolean locked = lock.tryLock(0, TimeUnit.NANOSECONDS);
      while (!locked && !isOver(end)) {
        locked = lock.tryLock(LOOK_MILLIS, TimeUnit.MILLISECONDS);
      }
      return locked;
    } finally {
      waiting.decrementAndGet();
    }
  }
}
