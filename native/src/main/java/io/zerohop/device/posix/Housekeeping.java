package io.zerohop.device.posix;

import io.zerohop.device.DeviceCode;
import io.zerohop.device.ZerohopException;
import java.time.Duration;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Set;
import java.util.concurrent.Executor;
import java.util.concurrent.RejectedExecutionException;
import java.util.function.BooleanSupplier;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The one thread for what is done again and again. Short chores are done on it. For a chore that
 * may wait, it only asks whether there is something to do, and {@linkplain ElasticThreads threads}
 * that come with such work and go without it do the rest. A chore is never done twice at a time.
 * Thread safe.
 */
public final class Housekeeping implements Executor, AutoCloseable {
  private static final Logger LOG = LoggerFactory.getLogger(Housekeeping.class);
  private static final Duration STOP_LIMIT = Duration.ofSeconds(20);

  /** Each chore has one at most. */
  private static final int MAX_WORKING = 64;

  private final Clock clock;
  private final Thread thread;
  private final ElasticThreads workers;

  /** Guarded by this, as is what follows. Those done last are looked at last. */
  private final List<Chore> chores = new ArrayList<>();

  /** Those that are being done. */
  private final Set<Chore> busy = new LinkedHashSet<>();

  private final Deque<Runnable> handedOver = new ArrayDeque<>();
  private boolean closed;

  /**
   * Starts the thread.
   *
   * @param clock by which chores' periods are measured
   * @throws ZerohopException (FALLBACK) if the system has no thread left
   */
  public Housekeeping(final Clock clock) {
    this.clock = clock;
    workers = new ElasticThreads("chores", MAX_WORKING, this);
    thread = Threads.daemon(this::run, "zerohop-housekeeping");
    thread.start();
  }

  /**
   * Has a short chore done on this thread.
   *
   * @param period pause between two of them
   */
  public Chore every(final Duration period, final String name, final Runnable chore) {
    return add(new Chore(name, period, null, chore));
  }

  /**
   * Has work done that may wait.
   *
   * @param period pause between two looks whether there is some
   * @param due says whether there is some; short, and never while it is being done
   * @param work done on a thread with the chore's name
   */
  public Chore every(
      final Duration period, final String name, final BooleanSupplier due, final Runnable work) {
    return add(new Chore(name, period, due, work));
  }

  private synchronized Chore add(final Chore chore) {
    chores.add(chore);
    notifyAll(); // Its period may be shorter than the pause that is being made.
    return chore;
  }

  /**
   * Has this thread do something once, soon: what other threads would do if the system had any.
   *
   * @throws RejectedExecutionException after the end
   */
  @Override
  public synchronized void execute(final Runnable work) {
    if (closed) {
      throw new RejectedExecutionException(thread.getName() + " has ended");
    }
    handedOver.add(work);
    notifyAll();
  }

  private void run() {
    for (Runnable next = next(); next != null; next = next()) {
      try {
        next.run();
      } catch (final Exception | LinkageError e) {
        failed("thread " + thread.getName(), e);
      }
    }
  }

  /** Waits for something to do; there is nothing at the end. */
  private synchronized @Nullable Runnable next() {
    while (!closed || !handedOver.isEmpty()) {
      final Runnable once = handedOver.poll();
      if (once != null) {
        return once;
      }
      long pause = Long.MAX_VALUE;
      for (int i = 0; i < chores.size(); i++) {
        final Chore chore = chores.get(i);
        if (chore.begin()) {
          chores.add(chores.remove(i));
          return chore::look;
        }
        pause = Math.min(pause, chore.pause());
      }
      pause(pause);
    }
    return null;
  }

  @SuppressWarnings("WaitNotInLoop") // The loop is the caller's.
  private void pause(final long nanos) {
    try {
      if (nanos == Long.MAX_VALUE) {
        wait();
      } else {
        clock.await(this, nanos);
      }
    } catch (final InterruptedException e) {
      LOG.debug("the pause was interrupted, and goes on until it is closed", e);
    }
  }

  private static void failed(final String where, final Throwable cause) {
    DeviceCode.CHORE_FAILED
        .says("a background task failed and will be retried")
        .at(where)
        .because(cause)
        .warn(LOG, cause);
  }

  /** Whether something is still being done, or may be. */
  public synchronized boolean isAlive() {
    return thread.isAlive() || !busy.isEmpty();
  }

  /** What is being done. */
  @Override
  public synchronized String toString() {
    return busy.isEmpty() ? thread.getName() : busy.toString();
  }

  /**
   * Ends the threads after what they do at present, for which it waits a limited time. Idempotent.
   */
  @Override
  public void close() {
    final List<Chore> left;
    synchronized (this) {
      closed = true;
      left = List.copyOf(chores);
      notifyAll();
    }
    left.forEach(Chore::close);
    // Also for a caller that was interrupted: what the chores use is freed behind this.
    Deadline.in(STOP_LIMIT).await(() -> !thread.isAlive(), thread::join);
    workers.close();
  }

  /** A task that is repeated until it is closed. Thread safe. */
  public final class Chore implements AutoCloseable {
    private final String name;
    private final Duration period;
    private final @Nullable BooleanSupplier due;
    private final Runnable work;

    /** Guarded by the housekeeping, as is what follows. */
    private long next;

    private boolean hurried;
    private boolean ended;

    /** Who does it, while somebody does. */
    private @Nullable Thread doing;

    private Chore(
        final String name,
        final Duration period,
        final @Nullable BooleanSupplier due,
        final Runnable work) {
      this.name = name;
      this.period = period;
      this.due = due;
      this.work = work;
      this.next = clock.in(period);
    }

    /** Nanoseconds until it may begin; while it is being done its end is told. */
    private long pause() {
      return doing == null ? Math.max(0, clock.left(next)) : Long.MAX_VALUE;
    }

    /** Begins it, if it is its time. */
    private boolean begin() {
      if (doing != null || ended || !hurried && !clock.isOver(next)) {
        return false;
      }
      hurried = false;
      doing = Thread.currentThread();
      busy.add(this);
      return true;
    }

    /** On the housekeeping's thread, after it has begun. */
    private void look() {
      boolean handed = false;
      try {
        if (due == null) {
          work.run();
        } else if (due.getAsBoolean()) {
          handed = true;
          workers.execute(this::doWork);
        }
      } catch (final Exception | LinkageError e) {
        handed = handed && !(e instanceof RejectedExecutionException);
        failed("chore " + name, e);
      } finally {
        if (!handed) {
          done();
        }
      }
    }

    private void doWork() {
      final Thread worker = Thread.currentThread();
      final String idle = worker.getName();
      final boolean wanted;
      synchronized (Housekeeping.this) {
        doing = worker;
        wanted = !ended;
      }
      worker.setName("zerohop-" + name);
      try {
        if (wanted) {
          work.run();
        }
      } catch (final Exception | LinkageError e) {
        failed("thread " + worker.getName(), e);
      } finally {
        worker.setName(idle);
        done();
      }
    }

    /** What was hurried does not put off what comes by its period. */
    private void done() {
      synchronized (Housekeeping.this) {
        doing = null;
        busy.remove(this);
        if (clock.isOver(next)) {
          next = clock.in(period);
        }
        Housekeeping.this.notifyAll();
      }
    }

    /**
     * Has the chore done now, or once more behind the one that is being done. Does not wait. From
     * the chore itself it does nothing, or what cannot be done would be tried without a pause.
     */
    public void hurry() {
      synchronized (Housekeeping.this) {
        if (Thread.currentThread() != doing) {
          hurried = true;
          Housekeeping.this.notifyAll();
        }
      }
    }

    /** Nothing of it begins any more; waits a limited time for what is being done. Idempotent. */
    @Override
    public void close() {
      close(Deadline.in(STOP_LIMIT));
    }

    /** The same within somebody else's limit. */
    public void close(final Deadline deadline) {
      synchronized (Housekeeping.this) {
        ended = true;
        chores.remove(this);
      }
      deadline.await(this::isOver, this::awaitDone);
    }

    /** Nothing of it begins any more, and what is being done is interrupted. Does not wait. */
    public void cancel() {
      synchronized (Housekeeping.this) {
        ended = true;
        chores.remove(this);
        if (doing != null && doing != thread && doing != Thread.currentThread()) {
          doing.interrupt();
        }
      }
    }

    private boolean isOver() {
      synchronized (Housekeeping.this) {
        return doing == null || doing == Thread.currentThread();
      }
    }

    @SuppressWarnings("WaitNotInLoop") // The loop is the deadline's.
    private void awaitDone(final long millis) throws InterruptedException {
      synchronized (Housekeeping.this) {
        if (!isOver()) {
          Housekeeping.this.wait(millis);
        }
      }
    }

    @Override
    public String toString() {
      return name;
    }
  }
}
