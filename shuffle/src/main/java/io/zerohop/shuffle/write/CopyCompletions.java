package io.zerohop.shuffle.write;

import com.google.errorprone.annotations.concurrent.GuardedBy;
import io.zerohop.device.CopyStream;
import io.zerohop.device.Signal;
import io.zerohop.device.Undo;
import io.zerohop.device.WaitException;
import io.zerohop.device.ZerohopException;
import io.zerohop.device.posix.Deadline;
import io.zerohop.device.posix.Threads;
import io.zerohop.shuffle.catalog.Catalog;
import io.zerohop.shuffle.catalog.Catalog.OwnOutput;
import io.zerohop.shuffle.log.ShuffleCode;
import io.zerohop.shuffle.pool.Devices;
import io.zerohop.shuffle.pool.Tier;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.LongAdder;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Map outputs that were published when the GPU had accepted their copies. The GPU raises an
 * output's ready word behind them, which readers wait for, on their GPU or on the host. One thread
 * looks at the words of all these outputs: when one is raised, it wakes who sleeps on it, gives the
 * stream back and drops the references that keep the memory from others while copies write to it.
 * It comes with the first such output, and goes after half a minute without one.
 *
 * <p>Copies that take longer than the limit fail their own output: its readers are told, it is
 * withdrawn, so that Spark runs the map task again, and its memory is given back once the copies
 * have ended. A GPU that reports an error ends the executor, as everywhere. Thread safe.
 */
public final class CopyCompletions implements AutoCloseable {
  private static final Logger LOG = LoggerFactory.getLogger(CopyCompletions.class);

  /** Why the wait for a ready word was aborted. */
  static final int COPIES_FAILED = 1;

  private static final Duration STOP_LIMIT = Duration.ofSeconds(30);

  private static final long IDLE_SECONDS = 30;

  /** Between looks at the words: sleeping hosts look themselves after 5 ms at most. */
  private static final long LOOK_MICROS = 200;

  /** Between questions to the driver, which tell whether the GPU can still raise a word. */
  private static final Duration ASK_EVERY = Duration.ofMillis(50);

  private final Devices devices;
  private final Catalog catalog;
  private final Duration limit;

  /** What is under way from now on; empty to wake the thread, when this is closed. */
  private final BlockingQueue<Optional<UnderWay>> queue = new LinkedBlockingQueue<>();

  private final AtomicInteger pending = new AtomicInteger();
  private final LongAdder begun = new LongAdder();

  /** Absent while nothing is under way, and nothing was lately. */
  @GuardedBy("this")
  private @Nullable Thread thread;

  private @Nullable RuntimeException failure;
  private boolean closed;

  /** An output whose copies are under way; used by the thread alone once it is queued. */
  private static final class UnderWay {
    private final OwnOutput output;
    private final CopyStream copies;
    private final Deadline due;
    private Deadline nextQuestion = Deadline.in(ASK_EVERY);
    private boolean withdrawn;

    UnderWay(final OwnOutput output, final CopyStream copies, final Duration limit) {
      this.output = output;
      this.copies = copies;
      this.due = Deadline.in(limit);
    }

    boolean takeQuestion() {
      if (!nextQuestion.isOver()) {
        return false;
      }
      nextQuestion = Deadline.in(ASK_EVERY);
      return true;
    }
  }

  /**
   * @param limit of the copies of one map output
   */
  public CopyCompletions(final Devices devices, final Catalog catalog, final Duration limit) {
    this.devices = devices;
    this.catalog = catalog;
    this.limit = limit;
  }

  /**
   * Has the GPU raise the output's ready word behind what the stream was given.
   *
   * @param output with the reference that {@link Catalog#publish} took; taken over if this returns
   *     true
   * @param copies taken over likewise
   * @return false if the GPU cannot reach the word, the system has no thread left, or the node
   *     ends: somebody has to wait for the copies
   * @throws ZerohopException (FATAL) if the GPU has failed
   */
  boolean follow(final OwnOutput output, final CopyStream copies) {
    final Signal ready = output.ready(devices.host(), devices.of(Tier.DEVICE));
    if (ready == null) {
      return false;
    }
    copies.raise(ready, OwnOutput.READY_EPOCH); // May block if the GPU does not take more work.
    synchronized (this) {
      if (failure != null) {
        throw new ZerohopException(
            ZerohopException.Category.FATAL, "the GPU of this executor has failed", failure);
      }
      if (closed || !hasThread()) {
        return false;
      }
      begun.increment();
      pending.incrementAndGet();
      queue.add(Optional.of(new UnderWay(output, copies, limit)));
      return true;
    }
  }

  @GuardedBy("this")
  private boolean hasThread() {
    if (thread != null) {
      return true;
    }
    final Thread started = Threads.daemon(this::run, "zerohop-copy-completions");
    try {
      started.start();
      thread = started;
      return true;
    } catch (final ZerohopException e) {
      LOG.debug("the map task waits for its copies", e);
      return false;
    }
  }

  private void run() {
    final List<UnderWay> underWay = new ArrayList<>();
    try (Undo undo = new Undo(() -> abortAll(underWay))) {
      follow(underWay);
      undo.done(); // What comes from now on belongs to the next thread.
    }
  }

  private void abortAll(final List<UnderWay> underWay) {
    for (Optional<UnderWay> left = queue.poll(); left != null; left = queue.poll()) {
      left.ifPresent(underWay::add);
    }
    underWay.forEach(this::abort);
  }

  /** Until nothing is under way, and this is closed or nothing more has come, or the GPU fails. */
  private void follow(final List<UnderWay> underWay) {
    boolean idle = false;
    while (!(underWay.isEmpty() && ends(idle))) {
      try {
        final boolean mayEnd = underWay.isEmpty();
        final Optional<UnderWay> next =
            mayEnd
                ? queue.poll(IDLE_SECONDS, TimeUnit.SECONDS)
                : queue.poll(LOOK_MICROS, TimeUnit.MICROSECONDS);
        idle = mayEnd && next == null;
        if (next != null) {
          next.ifPresent(underWay::add);
        }
      } catch (final InterruptedException e) {
        LOG.debug("interrupted, and goes on until it is closed", e);
      }
      for (final Iterator<UnderWay> each = underWay.iterator(); each.hasNext(); ) {
        if (hasEnded(each.next())) {
          each.remove(); // At once: nothing of it may be touched any more.
        }
      }
    }
  }

  /** Whether the thread is to end, which then nobody counts on any more. */
  private synchronized boolean ends(final boolean idle) {
    if (!queue.isEmpty() || !closed && !idle) {
      return false;
    }
    if (!closed) {
      thread = null;
    }
    return true;
  }

  private boolean hasEnded(final UnderWay next) {
    final Signal ready = next.output.ready(devices.host());
    try {
      if (!ready.reached(OwnOutput.READY_EPOCH) && !(next.takeQuestion() && isIdle(next.copies))) {
        if (next.due.isOver() && !next.withdrawn) {
          withdraw(next);
        }
        return false;
      }
      next.copies.synchronize(limit); // The raise was the last that it was given.
      ready.wake();
      next.copies.close();
    } catch (final RuntimeException e) {
      fail(e);
      // Its memory is never given back: nobody knows whether something still writes to it.
      throw new InternalError(
          "Zerohop cannot go on in this executor: the GPU failed while it copied map output "
              + next.output.mapId()
              + " of shuffle "
              + next.output.shuffleId()
              + ", which was published; its readers will fail",
          e);
    }
    next.output.release();
    pending.decrementAndGet();
    return true;
  }

  /** Tells its readers, and withdraws it; its memory stays. Returns whether it was there. */
  private boolean abort(final UnderWay next) {
    next.output.ready(devices.host()).abort(COPIES_FAILED);
    return catalog.remove(next.output);
  }

  /** Whether a stream has nothing left to do; throws if it never will do it. */
  private static boolean isIdle(final CopyStream copies) {
    try {
      copies.synchronize(Duration.ZERO);
      return true;
    } catch (final WaitException e) {
      if (e.reason() != WaitException.Reason.TIMEOUT) {
        throw e;
      }
      return false;
    }
  }

  /** Fails the output alone; what writes to its memory keeps it until it has ended. */
  private void withdraw(final UnderWay late) {
    late.withdrawn = true;
    if (!abort(late)) {
      return; // Its shuffle has ended.
    }
    ShuffleCode.COPIES_LATE
        .says(
            "copies of a map output took longer than "
                + limit.toMillis()
                + " ms after it was published; it is withdrawn")
        .at(late.output.toString())
        .remedy(
            "look at the GPU's load; spark.zerohop.device.timeout is the limit, and"
                + " spark.zerohop.device.asyncCommit=false makes the map task wait")
        .warn(LOG);
  }

  private synchronized void fail(final RuntimeException cause) {
    failure = cause;
  }

  /** Map outputs that were published before their copies had ended, since the start. */
  public long begun() {
    return begun.sum();
  }

  /** Map outputs whose copies are under way. */
  public int pending() {
    return pending.get();
  }

  /**
   * Takes nothing more, waits for what is under way for a limited time, and ends the thread; {@link
   * #pending} tells whether something is left. After a failure of the GPU nothing is waited for:
   * the thread may be the one that ends the process. Idempotent.
   */
  @Override
  public void close() {
    final Thread last;
    synchronized (this) {
      closed = true;
      last = thread;
      if (failure != null || last == null) {
        return;
      }
      queue.add(Optional.empty());
    }
    Deadline.in(STOP_LIMIT).await(() -> !last.isAlive(), last::join);
  }
}
