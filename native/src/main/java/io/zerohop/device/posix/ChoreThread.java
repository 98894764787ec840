package io.zerohop.device.posix;

import java.time.Duration;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** Runs a short chore again and again on a daemon thread of its own, until closed. Thread safe. */
public final class ChoreThread implements AutoCloseable {
  private static final Logger LOG = LoggerFactory.getLogger(ChoreThread.class);
  private static final Duration STOP_LIMIT = Duration.ofSeconds(20);

  private final String name;
  private final Clock clock;
  private final Runnable chore;
  private final Duration period;
  private final Thread thread;
  private boolean hurried;
  private boolean closed;

  /**
   * Starts the thread.
   *
   * @param period pause between two chores
   * @param clock by which it pauses
   * @throws io.zerohop.device.ZerohopException (FALLBACK) if the system has no thread left
   */
  public ChoreThread(
      final String name, final Duration period, final Clock clock, final Runnable chore) {
    this.name = name;
    this.clock = clock;
    this.chore = chore;
    this.period = period;
    thread = Threads.daemon(this::run, "zerohop-" + name);
    thread.start();
  }

  private void run() {
    while (pause()) {
      try {
        chore.run();
      } catch (final Exception e) {
        Housekeeping.failed(name, e);
      }
    }
  }

  @SuppressWarnings("WaitNotInLoop") // A pause that ends early is a chore that comes early.
  private synchronized boolean pause() {
    final long next = clock.in(period);
    while (!closed && !hurried && !clock.isOver(next)) {
      try {
        clock.await(this, clock.left(next));
      } catch (final InterruptedException e) {
        LOG.debug("a chore's pause was interrupted, and goes on until it is closed", e);
      }
    }
    hurried = false;
    return !closed;
  }

  /**
   * Has the chore done now, or once more behind the one that is being done. Does not wait. From the
   * chore itself it does nothing, or what cannot be done would be tried without a pause.
   */
  public synchronized void hurry() {
    if (Thread.currentThread() != thread) {
      hurried = true;
      notifyAll();
    }
  }

  /** Whether it still does a chore, or may do another. */
  public boolean isAlive() {
    return thread.isAlive();
  }

  @Override
  public String toString() {
    return thread.getName();
  }

  /** Ends the thread after its present chore, for which it waits a limited time. Idempotent. */
  @Override
  public void close() {
    synchronized (this) {
      closed = true;
      notifyAll();
    }
    // Also for a caller that was interrupted: what the chore uses is freed behind this.
    Deadline.in(STOP_LIMIT).await(() -> !thread.isAlive(), thread::join);
  }
}
