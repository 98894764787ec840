package io.zerohop.spark.executor;

import com.google.errorprone.annotations.concurrent.GuardedBy;
import io.zerohop.device.Transitions;
import io.zerohop.device.WaitException;
import io.zerohop.device.ZerohopException;
import io.zerohop.device.posix.Threads;
import java.time.Duration;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.FutureTask;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.function.Consumer;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/**
 * The single shuffle instance of a process, created when a task first needs it, or is about to. It
 * is made by a thread of its own: a task that is cancelled is interrupted, and what the interrupt
 * would break here is the whole executor's, not the task's. A failure is that of those who wait for
 * it; who asks later has it tried again. Thread safe.
 */
public final class Startup<T> {
  /** The state of the start. */
  enum State {
    /** Nobody has asked for it, or what was tried has failed. */
    IDLE,

    /** It is being made. */
    STARTING,

    /** It is there. */
    MADE,

    /** What was made is closed, and nothing is made any more; what still comes is closed, too. */
    STOPPED;

    static final Transitions<State> TRANSITIONS =
        new Transitions<>(
            Map.of(
                IDLE, Set.of(STARTING, STOPPED),
                STARTING, Set.of(IDLE, MADE, STOPPED),
                MADE, Set.of(STOPPED)));
  }

  private final String thread;
  private final Duration limit;
  private final Consumer<T> closer;

  @GuardedBy("this")
  private State state = State.IDLE;

  /** The last start, once there was one. */
  @GuardedBy("this")
  private @Nullable FutureTask<T> start;

  /** Present from {@link State#MADE} on; kept when that is stopped, for tasks that still run. */
  private volatile @Nullable T made;

  /**
   * @param thread name of the thread that makes it
   * @param limit how long a task waits for it
   * @param closer ends what nobody will take any more
   */
  public Startup(final String thread, final Duration limit, final Consumer<T> closer) {
    this.thread = thread;
    this.limit = limit;
    this.closer = closer;
  }

  /** Returns the instance; null if there is none, or none yet. */
  public @Nullable T made() {
    return made;
  }

  /**
   * Creates the instance if there is none, and waits for it.
   *
   * @param maker does not give null
   * @throws IllegalStateException if {@link #stop} was called
   * @throws WaitException if the caller is interrupted, or the limit has passed; it is still being
   *     made then
   * @throws RuntimeException what making it has thrown
   */
  public T get(final Supplier<T> maker) {
    final T known = made;
    return known != null ? known : await(begun(maker));
  }

  /**
   * Begins to create the instance if there is none, for a caller of {@link #get} that comes soon.
   * Does not wait, unless no thread can be started.
   *
   * @param maker does not give null; those who wait meanwhile get what it throws
   * @throws IllegalStateException if {@link #stop} was called
   */
  public void begin(final Supplier<T> maker) {
    begun(maker);
  }

  private FutureTask<T> begun(final Supplier<T> maker) {
    final FutureTask<T> next;
    synchronized (this) {
      if (state == State.STOPPED) {
        throw gone();
      }
      if (start != null && state != State.IDLE) {
        return start;
      }
      next = new FutureTask<>(() -> make(maker));
      start = next;
      become(State.STARTING);
    }
    run(next); // Without the monitor: where there is no thread, this takes as long as making it.
    return next;
  }

  private void run(final FutureTask<T> next) {
    final Thread starter = Threads.daemonOfCaller(next, thread);
    try {
      starter.start();
    } catch (final ZerohopException e) {
      final boolean interrupted = Thread.interrupted();
      try {
        next.run();
      } finally {
        if (interrupted) {
          Thread.currentThread().interrupt();
        }
      }
    }
  }

  private T make(final Supplier<T> maker) {
    final T value;
    boolean done = false;
    try {
      value = maker.get();
      done = true;
    } finally {
      if (!done) {
        failed();
      }
    }
    return keep(value);
  }

  /** Before those who wait hear of it: one of them may ask again at once. */
  private synchronized void failed() {
    if (state == State.STARTING) {
      become(State.IDLE);
    }
  }

  private T keep(final T value) {
    synchronized (this) {
      if (state == State.STARTING) {
        made = value;
        become(State.MADE);
        return value;
      }
    }
    closer.accept(value);
    throw gone();
  }

  @GuardedBy("this")
  private void become(final State next) {
    state = State.TRANSITIONS.go(state, next, "what " + thread + " makes");
  }

  private T await(final FutureTask<T> running) {
    try {
      return running.get(limit.toMillis(), TimeUnit.MILLISECONDS);
    } catch (final InterruptedException e) {
      Thread.currentThread().interrupt();
      throw new WaitException(
          WaitException.Reason.CANCELLED, "interrupted while Zerohop starts in this executor", e);
    } catch (final TimeoutException e) {
      throw new WaitException(
          WaitException.Reason.TIMEOUT,
          "Zerohop has not started in this executor within " + limit.toSeconds() + " s",
          e);
    } catch (final ExecutionException e) {
      if (e.getCause() instanceof Error error) {
        throw error;
      }
      // A supplier throws nothing else.
      throw e.getCause() instanceof RuntimeException cause ? cause : new IllegalStateException(e);
    }
  }

  private static IllegalStateException gone() {
    return new IllegalStateException("The shuffle manager of this executor has been stopped");
  }

  /** Nothing is made any more; ends what was. Idempotent. */
  public void stop() {
    final T last;
    synchronized (this) {
      if (state == State.STOPPED) {
        return;
      }
      become(State.STOPPED);
      last = made;
    }
    if (last != null) {
      closer.accept(last);
    }
  }
}
