package io.zerohop.device.posix;

import io.zerohop.device.DeviceCode;
import io.zerohop.device.ZerohopException;
import java.time.Duration;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.List;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.ThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import java.util.function.BooleanSupplier;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Does what is periodic in an executor, on one daemon thread that starts with the first chore.
 * Short chores run on this thread. A long chore has a thread of its own, which comes when there is
 * work and goes after half a minute without; if the system has no thread left, this thread does the
 * work, and the other chores come late. Thread safe; owns its chores.
 */
public final class Housekeeping implements AutoCloseable {
  private static final Logger LOG = LoggerFactory.getLogger(Housekeeping.class);
  private static final Duration STOP_LIMIT = Duration.ofSeconds(20);
  private static final Duration LONGEST_PAUSE = Duration.ofHours(1);
  private static final Duration IDLE = Duration.ofSeconds(30);

  private final Clock clock;

  /** Under this monitor, as are the fields below and those of a chore. */
  private final List<Chore> chores = new ArrayList<>();

  /** Absent before the first chore. */
  private @Nullable Thread thread;

  private boolean closed;

  /** Starts nothing yet. */
  public Housekeeping(final Clock clock) {
    this.clock = clock;
  }

  /**
   * Adds a short chore, which may not wait.
   *
   * @param period pause between two rounds, and before the first
   * @param work a round; one that fails is done again after the pause
   * @throws ZerohopException (FALLBACK) if the system has no thread left for housekeeping
   */
  public Chore every(final String name, final Duration period, final Runnable work) {
    return add(new Chore(name, period, () -> true, work, null));
  }

  /**
   * Adds a chore that may take long or wait; its thread is named after it.
   *
   * @param period pause between two rounds, and before the first
   * @param needed tells whether a round has something to do; may not wait
   * @param work a round; one that fails is done again after the pause
   * @throws ZerohopException (FALLBACK) if the system has no thread left for housekeeping
   */
  public Chore everyLong(
      final String name, final Duration period, final BooleanSupplier needed, final Runnable work) {
    return add(new Chore(name, period, needed, work, Threads.pool(name, 1, IDLE)));
  }

  private synchronized Chore add(final Chore chore) {
    if (thread == null) {
      final Thread started = Threads.daemon(this::run, "zerohop-housekeeping");
      started.start();
      thread = started;
    }
    chores.add(chore);
    notifyAll();
    return chore;
  }

  private void run() {
    for (Chore due = awaitDue(); due != null; due = awaitDue()) {
      due.begin();
    }
  }

  /** Returns the next chore, which counts as busy from now on; absent once this is closed. */
  private synchronized @Nullable Chore awaitDue() {
    while (!closed) {
      long pause = LONGEST_PAUSE.toNanos();
      for (final Chore chore : chores) {
        if (chore.takeIfDue()) {
          return chore;
        }
        pause = Math.min(pause, chore.pauseNanos());
      }
      try {
        clock.await(this, pause);
      } catch (final InterruptedException e) {
        LOG.debug("a pause was interrupted, and goes on until this is closed", e);
      }
    }
    return null;
  }

  /** Warns of a chore that will be done again. */
  private static void failed(final String chore, final Exception cause) {
    DeviceCode.CHORE_FAILED
        .says("a background task failed and will be retried")
        .at("zerohop-" + chore)
        .because(cause)
        .warn(LOG, cause);
  }

  /**
   * Ends all chores and the thread, and waits a limited time for the rounds under way. Idempotent.
   */
  @Override
  public void close() {
    final List<Chore> left;
    final Thread last;
    synchronized (this) {
      closed = true;
      left = List.copyOf(chores);
      last = thread;
      notifyAll();
    }
    left.forEach(Chore::close);
    if (last != null) {
      Deadline.in(STOP_LIMIT).await(() -> !last.isAlive(), last::join);
    }
  }

  /** Work that is done again and again, until closed. Thread safe. */
  public final class Chore implements AutoCloseable {
    private final String name;
    private final Duration period;
    private final BooleanSupplier needed;
    private final Runnable work;

    /** Has one thread or none; absent for a short chore. */
    private final @Nullable ThreadPoolExecutor own;

    /** Tasks to be done before the next round. */
    private final Deque<Runnable> wanted = new ArrayDeque<>();

    private long next;

    /** The task that was taken last; absent for a round. Used by the housekeeping thread. */
    private @Nullable Runnable taken;

    private boolean busy;

    private boolean over;

    /** The thread that does the task under way. */
    private volatile @Nullable Thread doer;

    private Chore(
        final String name,
        final Duration period,
        final BooleanSupplier needed,
        final Runnable work,
        final @Nullable ThreadPoolExecutor own) {
      this.name = name;
      this.period = period;
      this.needed = needed;
      this.work = work;
      this.own = own;
      this.next = clock.in(period);
    }

    private boolean takeIfDue() {
      synchronized (Housekeeping.this) {
        if (busy || wanted.isEmpty() && !clock.isOver(next)) {
          return false;
        }
        taken = wanted.poll();
        busy = true;
        return true;
      }
    }

    /** Nothing is due while it is busy: its end wakes the thread. */
    private long pauseNanos() {
      synchronized (Housekeeping.this) {
        return busy ? Long.MAX_VALUE : clock.left(next);
      }
    }

    /** Does what was taken, or has it done. */
    private void begin() {
      final Runnable task = taken;
      if (own == null) {
        perform(task);
        return;
      }
      try {
        if (task == null && !isNeeded()) {
          ended(true);
        } else {
          own.execute(() -> perform(task));
        }
      } catch (final RejectedExecutionException e) {
        ended(false); // It was closed meanwhile.
      } catch (final ZerohopException e) {
        LOG.debug("no thread for {}; done by housekeeping", name, e);
        perform(task);
      }
    }

    private boolean isNeeded() {
      try {
        return needed.getAsBoolean();
      } catch (final RuntimeException e) {
        Housekeeping.failed(name, e);
        return false;
      }
    }

    /**
     * @param task absent for a round
     */
    private void perform(final @Nullable Runnable task) {
      doer = Thread.currentThread();
      try {
        if (!isOver()) {
          (task == null ? work : task).run();
        }
      } catch (final Exception e) {
        Housekeeping.failed(name, e);
      } finally {
        doer = null;
        ended(task == null);
      }
    }

    private void ended(final boolean round) {
      synchronized (Housekeeping.this) {
        busy = false;
        if (round) {
          next = clock.in(period);
        }
        Housekeeping.this.notifyAll();
      }
    }

    private boolean isOver() {
      synchronized (Housekeeping.this) {
        return over;
      }
    }

    /**
     * Has a task done before the next round, by the same thread, unless it is waiting already. Does
     * not wait. From the chore itself it does nothing, or what cannot be done would be tried
     * without a pause.
     *
     * @param task known by its identity; one that fails is not done again
     */
    public void soon(final Runnable task) {
      if (Thread.currentThread() == doer) {
        return;
      }
      synchronized (Housekeeping.this) {
        if (!over && !wanted.contains(task)) {
          wanted.add(task);
          Housekeeping.this.notifyAll();
        }
      }
    }

    /** Has a round done soon, needed or not; as {@link #soon}. */
    public void hurry() {
      soon(work);
    }

    /** Returns whether a round or a task is under way, also after the end. */
    public boolean isBusy() {
      synchronized (Housekeeping.this) {
        return busy;
      }
    }

    /** Begins no further round, and interrupts a long one. Does not wait. Idempotent. */
    public void cancel() {
      stop();
      if (own != null && !own.shutdownNow().isEmpty()) {
        ended(false); // What it drops has not begun.
      }
    }

    private void stop() {
      synchronized (Housekeeping.this) {
        over = true;
        wanted.clear();
        chores.remove(this);
      }
      if (own != null) {
        own.shutdown();
      }
    }

    /**
     * Begins no further round, and waits a limited time for the present one, also if the caller is
     * interrupted: what a round uses is freed behind this. Idempotent.
     */
    @Override
    public void close() {
      stop();
      Deadline.in(STOP_LIMIT).await(this::isIdle, this::awaitIdle);
    }

    private boolean isIdle() {
      return !isBusy() && (own == null || own.isTerminated());
    }

    @SuppressWarnings("WaitNotInLoop") // The caller looks again.
    private void awaitIdle(final long millis) throws InterruptedException {
      synchronized (Housekeeping.this) {
        if (busy) {
          Housekeeping.this.wait(millis);
          return;
        }
      }
      if (own != null) {
        own.awaitTermination(millis, TimeUnit.MILLISECONDS);
      }
    }

    @Override
    public String toString() {
      return name;
    }
  }
}
