package io.zerohop.shuffle.transport.ucx.jucx;

import io.zerohop.device.Message;
import io.zerohop.device.posix.Clock;
import io.zerohop.device.posix.Deadline;
import io.zerohop.device.posix.Threads;
import io.zerohop.shuffle.log.ShuffleCode;
import io.zerohop.shuffle.transport.ucx.engine.UcxException;
import io.zerohop.shuffle.transport.ucx.jucx.JucxEngine.Lifecycle;
import java.time.Duration;
import java.util.Objects;
import java.util.concurrent.Callable;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Executor;
import java.util.concurrent.TimeoutException;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import org.openucx.jucx.ucp.UcpWorker;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The thread that drives a worker: others hand it what is to be done, and it alone calls UCX. While
 * requests are under way it looks for progress a little before it sleeps, since a wake-up costs
 * more than a small get.
 *
 * <p>An adapter wakes it by an event for what comes after it was asked for events. By the standard
 * of verbs (ibv_req_notify_cq(3)) there is none for what came between the last look and that
 * moment, and UCX does not look again; some adapters send one all the same. With an adapter another
 * thread therefore wakes it now and then ({@link #wakeIfAsleep}), or it would sleep until UCX's
 * keepalive, 20 s.
 */
final class JucxWorker implements Executor, AutoCloseable {
  private static final Logger LOG = LoggerFactory.getLogger(JucxWorker.class);
  private static final Duration STOP_LIMIT = Duration.ofSeconds(10);
  private static final Duration CALL_LIMIT = Duration.ofSeconds(10);

  private final UcpWorker worker;
  private final Runnable onStart;
  private final long spinNanos;
  private final Clock clock;
  private final ConcurrentLinkedQueue<Runnable> tasks = new ConcurrentLinkedQueue<>();
  private final AtomicInteger pending = new AtomicInteger();
  private final AtomicLong ended = new AtomicLong();
  private final AtomicLong events = new AtomicLong();
  private final Thread thread;

  /** Whether the thread sleeps, or is about to. */
  private volatile boolean asleep;

  /** Written with the monitor held; the worker's thread reads it without. */
  private volatile Lifecycle state = Lifecycle.OPEN;

  /** Whether the thread has failed, closed or not. */
  private volatile boolean dead;

  /**
   * Takes the worker over, which must have no thread yet.
   *
   * @param onStart run by the thread before it touches the worker, such as to enter a GPU's context
   * @param spin how long to look for progress before sleeping
   * @param clock by which its limits are measured
   */
  JucxWorker(
      final UcpWorker worker, final Runnable onStart, final Duration spin, final Clock clock) {
    this.clock = clock;
    this.spinNanos = spin.toNanos();
    this.worker = worker;
    this.onStart = onStart;
    thread = Threads.daemon(this::run, "zerohop-ucx");
    thread.start();
  }

  /** Has the thread look for progress if it sleeps. */
  void wakeIfAsleep() {
    if (asleep && !dead) {
      wakeUp();
    }
  }

  UcpWorker worker() {
    return worker;
  }

  /**
   * Runs a task on the worker's thread, in the order of the calls; not at all once the worker
   * closes.
   */
  @Override
  public void execute(final Runnable task) {
    tasks.add(task);
    wakeUp();
  }

  private synchronized void wakeUp() {
    if (state != Lifecycle.CLOSED && Thread.currentThread() != thread) {
      worker.signal();
    }
  }

  /**
   * Runs a task on the worker's thread and waits for the result, a limited time.
   *
   * @throws UcxException if it fails
   */
  <T> T call(final String what, final Callable<T> task) {
    final CompletableFuture<T> answer = new CompletableFuture<>();
    execute(
        () -> {
          try {
            answer.complete(task.call());
          } catch (final Exception | LinkageError e) {
            answer.completeExceptionally(e);
          }
        });
    try {
      return clock.get(answer, CALL_LIMIT);
    } catch (final ExecutionException e) {
      final Throwable cause = Objects.requireNonNullElse(e.getCause(), e);
      throw new UcxException(Message.of("UCX could not " + what).because(cause), e);
    } catch (final TimeoutException e) {
      throw new UcxException("UCX did not " + what + " within " + CALL_LIMIT.toSeconds() + " s", e);
    } catch (final InterruptedException e) {
      Thread.currentThread().interrupt();
      throw new UcxException("interrupted while UCX was to " + what, e);
    }
  }

  /** One more request is under way. */
  void begun() {
    pending.incrementAndGet();
  }

  /** A request has called back. */
  void ended() {
    pending.decrementAndGet();
    ended.incrementAndGet();
  }

  /** Returns whether nothing that is submitted will ever call back. */
  boolean isDead() {
    return dead;
  }

  int pending() {
    return pending.get();
  }

  /** What the worker has handled, but for requests of its own that have ended by it. */
  long events() {
    return events.get();
  }

  private void run() {
    try {
      onStart.run();
      long idleSince = 0;
      while (state == Lifecycle.OPEN) {
        boolean busy = runTasks();
        busy |= progress();
        if (busy) {
          idleSince = 0;
        } else if (pending.get() > 0 && spins(idleSince)) {
          idleSince = idleSince == 0 ? clock.nanos() : idleSince;
          Thread.onSpinWait();
        } else if (tasks.isEmpty()) {
          idleSince = 0;
          asleep = true;
          worker.waitForEvents(); // Until a request gets on, or somebody wakes it.
          asleep = false;
        }
      }
    } catch (final RuntimeException | LinkageError e) {
      ShuffleCode.UCX_DIED
          .says("UCX's thread has died; blocks of other nodes are sent or staged from now on")
          .because(e)
          .remedy("restart the executor, and report this")
          .error(LOG, e);
      dead = true;
      runTasks(); // Requests among them fail, since it is dead.
    }
  }

  private boolean spins(final long since) {
    return since == 0 || clock.since(since) < spinNanos;
  }

  private boolean runTasks() {
    boolean any = false;
    for (Runnable task = tasks.poll(); task != null; task = tasks.poll()) {
      any = true;
      try {
        task.run();
      } catch (final RuntimeException e) {
        ShuffleCode.REQUEST_FAILED
            .says("a UCX request failed that no reader waits for")
            .warn(LOG, e);
      }
    }
    return any;
  }

  /** Callbacks run in here; what one throws comes out, and must not end the thread. */
  private boolean progress() {
    try {
      final long endedBefore = ended.get();
      final int handled = worker.progress();
      events.addAndGet(Math.max(0, handled - (ended.get() - endedBefore)));
      return handled > 0;
    } catch (final Exception e) {
      LOG.debug("UCX reports", e);
      events.incrementAndGet();
      return true;
    }
  }

  /**
   * Ends the thread and closes the worker, in a limited time; a thread that does not end keeps the
   * worker. Idempotent.
   *
   * @param last run by the thread's successor, the caller, before the worker is closed
   * @return whether everything was closed
   */
  boolean close(final Runnable last) {
    beginClose();
    // Also for a caller that was interrupted: what the thread uses is freed behind this.
    Deadline.in(STOP_LIMIT).await(() -> !thread.isAlive(), thread::join);
    synchronized (this) {
      if (thread.isAlive() || state == Lifecycle.CLOSED) {
        return state == Lifecycle.CLOSED;
      }
      become(Lifecycle.CLOSED);
    }
    runTasks();
    last.run();
    drain();
    worker.close();
    return true;
  }

  private synchronized void beginClose() {
    if (state == Lifecycle.OPEN) {
      become(Lifecycle.CLOSING);
    }
    wakeUp();
  }

  private void become(final Lifecycle next) {
    state = Lifecycle.TRANSITIONS.go(state, next, "the worker of UCX");
  }

  /** Lets what was given up call back, so that nobody's memory is written any more. */
  private void drain() {
    final long deadline = clock.in(STOP_LIMIT);
    while (pending.get() > 0 && !clock.isOver(deadline)) {
      runTasks();
      progress();
    }
  }

  @Override
  public void close() {
    close(() -> {});
  }
}
