package io.zerohop.device.posix;

import io.zerohop.device.ZerohopException;
import java.time.Duration;
import java.util.concurrent.Executor;
import java.util.concurrent.LinkedTransferQueue;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.ThreadFactory;
import java.util.concurrent.ThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Threads that come with work and go half a minute after it. Where the system has no thread left,
 * those that are there do it, and if there is none, another executor does. Thread safe.
 */
public final class ElasticThreads implements Executor, AutoCloseable {
  private static final Logger LOG = LoggerFactory.getLogger(ElasticThreads.class);

  private static final Duration IDLE = Duration.ofSeconds(30);

  private static final Duration STOP_LIMIT = Duration.ofSeconds(10);

  private final String name;
  private final Executor spare;
  private final ThreadPoolExecutor threads;

  /**
   * Starts none yet.
   *
   * @param name of its threads
   * @param most threads at a time; what comes while all of them work waits its turn
   * @param spare does what finds no thread; must have one of its own
   */
  public ElasticThreads(final String name, final int most, final Executor spare) {
    this(name, most, spare, work -> Threads.daemon(work, "zerohop-" + name), IDLE);
  }

  /** The same with other threads, which stay so long without work. */
  ElasticThreads(
      final String name,
      final int most,
      final Executor spare,
      final ThreadFactory factory,
      final Duration idle) {
    this.name = name;
    this.spare = spare;
    threads =
        new ThreadPoolExecutor(
            0,
            most,
            idle.toNanos(),
            TimeUnit.NANOSECONDS,
            new Handover(),
            work -> {
              final Thread thread = factory.newThread(work);
              thread.setUncaughtExceptionHandler(this::ended);
              return thread;
            },
            ElasticThreads::enqueue);
  }

  /**
   * A queue that offers work to idle threads alone, so that the pool starts one if there is none.
   */
  private static final class Handover extends LinkedTransferQueue<Runnable> {
    private static final long serialVersionUID = 1L;

    @Override
    public boolean offer(final Runnable work) {
      return tryTransfer(work);
    }
  }

  /** All threads are at work: it waits its turn. */
  private static void enqueue(final Runnable work, final ThreadPoolExecutor threads) {
    if (threads.isShutdown()) {
      throw new RejectedExecutionException(work + " comes after the end");
    }
    threads.getQueue().add(work);
  }

  /**
   * One that ends for want of a successor must not end the process, nor keep work from the rest.
   */
  private void ended(final Thread thread, final Throwable cause) {
    if (cause instanceof ZerohopException) {
      LOG.info("{} ended early", thread.getName(), cause);
      workIfAlone();
    } else {
      thread.getThreadGroup().uncaughtException(thread, cause);
    }
  }

  /**
   * Has work done; does not wait for it.
   *
   * @throws RejectedExecutionException after the end
   */
  @Override
  public void execute(final Runnable work) {
    try {
      threads.execute(work);
    } catch (final ZerohopException e) {
      LOG.debug("no new thread for {}; others do its work", name, e);
      enqueue(work, threads);
      workIfAlone();
    }
  }

  /** Has another executor do what waits, if no thread is there that will. */
  private void workIfAlone() {
    if (threads.getPoolSize() > 0 || threads.getQueue().isEmpty()) {
      return;
    }
    try {
      spare.execute(this::workThatWaits);
    } catch (final RejectedExecutionException e) {
      LOG.debug("work of {} came too late to be done", name, e);
    }
  }

  private void workThatWaits() {
    for (Runnable work = threads.getQueue().poll();
        work != null;
        work = threads.getQueue().poll()) {
      try {
        work.run();
      } catch (final RuntimeException e) {
        ended(Thread.currentThread(), e);
      }
    }
    threads.purge(); // It looks whether this was all that an end waits for.
  }

  /** Takes nothing in any more; what was handed over is done. Does not wait. */
  public void shutdown() {
    threads.shutdown();
  }

  /**
   * Lets the threads do what was handed over, for a limited time. Idempotent.
   *
   * @return false if some of them are still at work
   */
  public boolean end() {
    shutdown();
    // Also for a caller that was interrupted: what the threads use is freed behind this.
    return Deadline.in(STOP_LIMIT)
        .await(
            threads::isTerminated,
            millis -> threads.awaitTermination(millis, TimeUnit.MILLISECONDS));
  }

  @Override
  public void close() {
    end();
  }

  @Override
  public String toString() {
    return "zerohop-" + name;
  }
}
