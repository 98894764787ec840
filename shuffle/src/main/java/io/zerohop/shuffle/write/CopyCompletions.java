package io.zerohop.shuffle.write;

import io.zerohop.device.CopyStream;
import io.zerohop.device.Signal;
import io.zerohop.device.ZerohopException;
import io.zerohop.device.posix.Deadline;
import io.zerohop.device.posix.Threads;
import io.zerohop.shuffle.catalog.Catalog;
import io.zerohop.shuffle.catalog.OwnOutput;
import io.zerohop.shuffle.pool.Devices;
import io.zerohop.shuffle.pool.Tier;
import java.time.Duration;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.LongAdder;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Map outputs that were published when the GPU had accepted their copies. The GPU raises an
 * output's ready word behind them, which readers wait for, on their GPU or on the host. One thread
 * follows, in the order in which outputs were published: it wakes who sleeps on the word, gives the
 * stream back and drops the references that keep the memory from others while copies write to it.
 *
 * <p>A copy that fails cannot be told to a task that has ended: the output's readers are told, and
 * the thread ends with an error, which ends the executor. Thread safe.
 */
public final class CopyCompletions implements AutoCloseable {
  private static final Logger LOG = LoggerFactory.getLogger(CopyCompletions.class);

  /** Why the wait for a ready word was aborted. */
  static final int COPIES_FAILED = 1;

  private static final Duration STOP_LIMIT = Duration.ofSeconds(30);

  private final Devices devices;
  private final Catalog catalog;
  private final Duration limit;
  private final BlockingQueue<Pending> queue = new LinkedBlockingQueue<>();
  private final AtomicInteger pending = new AtomicInteger();
  private final LongAdder begun = new LongAdder();
  private final Thread thread;
  private RuntimeException failure;
  private boolean closed;

  /** Null at the end. */
  private record Pending(OwnOutput output, CopyStream copies) {}

  /**
   * @param limit of the copies of one map output
   * @throws ZerohopException (FALLBACK) if its thread cannot be started
   */
  public CopyCompletions(final Devices devices, final Catalog catalog, final Duration limit) {
    this.devices = devices;
    this.catalog = catalog;
    this.limit = limit;
    thread = Threads.daemon(this::run, "zerohop-copy-completions");
    thread.start();
  }

  /**
   * Has the GPU raise the output's ready word behind what the stream was given.
   *
   * @param output with the reference that {@link Catalog#publishPending} took; taken over if this
   *     returns true
   * @param copies taken over likewise
   * @return false if the GPU cannot reach the word, or the node ends: somebody has to wait for the
   *     copies
   * @throws ZerohopException (FATAL) if copies of an output before have failed
   */
  boolean follow(final OwnOutput output, final CopyStream copies) {
    final Signal ready = output.ready(devices.host(), devices.of(Tier.DEVICE));
    if (ready == null) {
      return false;
    }
    synchronized (this) {
      if (failure != null) {
        throw new ZerohopException(
            ZerohopException.Category.FATAL, "earlier copies of this executor failed", failure);
      }
      if (closed) {
        return false;
      }
      copies.raise(ready, OwnOutput.READY_EPOCH);
      begun.increment();
      pending.incrementAndGet();
      queue.add(new Pending(output, copies));
      return true;
    }
  }

  private void run() {
    while (true) {
      try {
        final Pending next = queue.take();
        if (next.output() == null) {
          return;
        }
        finish(next);
      } catch (final InterruptedException e) {
        LOG.debug("interrupted, and goes on until it is closed", e);
      }
    }
  }

  private void finish(final Pending next) {
    final OwnOutput output = next.output();
    final Signal ready = output.ready(devices.host());
    try {
      next.copies().synchronize(limit);
      ready.wake();
      next.copies().close();
    } catch (final RuntimeException e) {
      fail(e);
      ready.abort(COPIES_FAILED);
      catalog.remove(output);
      // Its memory is never given back: nobody knows whether something still writes to it.
      throw new InternalError(
          "Zerohop cannot go on in this executor: the copies of map output "
              + output.mapId()
              + " of shuffle "
              + output.shuffleId()
              + " failed, or took longer than spark.zerohop.device.timeout, after it was published;"
              + " its readers will fail",
          e);
    }
    output.release();
    pending.decrementAndGet();
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
   * #pending} tells whether something is left. Idempotent.
   */
  @Override
  public void close() {
    synchronized (this) {
      closed = true;
      queue.add(new Pending(null, null));
    }
    Deadline.in(STOP_LIMIT).await(() -> !thread.isAlive(), thread::join);
  }
}
