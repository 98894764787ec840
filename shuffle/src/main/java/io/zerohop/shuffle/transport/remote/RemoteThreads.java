package io.zerohop.shuffle.transport.remote;

import io.zerohop.device.ZerohopException;
import io.zerohop.device.posix.Deadline;
import io.zerohop.device.posix.Threads;
import io.zerohop.shuffle.log.ShuffleCode;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.Executor;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.ThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The threads that serve other executors: for own transfers, for responses, and for slow work, so
 * that none waits for another. They come with the work and go after half a minute without, except
 * that work for which the system has no thread left is done by one that is there, or else by {@link
 * #maintain}: the carrier's own threads, which hand most of it over, must not do it. Thread safe.
 */
public final class RemoteThreads implements AutoCloseable {
  private static final Logger LOG = LoggerFactory.getLogger(RemoteThreads.class);

  /** Answers are short. */
  private static final int ANSWERING = 2;

  /** Each may wait for a GPU, or compute checksums and compress at some GB/s. */
  private static final int MAX_WORKING = 4;

  private static final long IDLE_SECONDS = 30;
  private static final Duration STOP_LIMIT = Duration.ofSeconds(10);

  private final ThreadPoolExecutor transfers;
  private final ThreadPoolExecutor answers = pool("answers", ANSWERING);
  private final ThreadPoolExecutor sends;
  private final List<ThreadPoolExecutor> all;

  /** Starts none yet. */
  public RemoteThreads() {
    final int working =
        Math.max(2, Math.min(MAX_WORKING, Runtime.getRuntime().availableProcessors() / 4));
    transfers = pool("transfers", working);
    sends = pool("sends", working);
    all = List.of(transfers, answers, sends);
  }

  private static ThreadPoolExecutor pool(final String name, final int threads) {
    final ThreadPoolExecutor pool =
        new ThreadPoolExecutor(
            threads,
            threads,
            IDLE_SECONDS,
            TimeUnit.SECONDS,
            new LinkedBlockingQueue<>(),
            task -> Threads.daemon(task, "zerohop-" + name));
    pool.allowCoreThreadTimeOut(true);
    return pool;
  }

  private static void hand(final ThreadPoolExecutor pool, final Runnable task) {
    try {
      pool.execute(task);
    } catch (final ZerohopException e) {
      LOG.debug("no thread is left to serve other executors", e);
      if (!pool.getQueue().contains(task)) {
        pool.getQueue().add(task);
      }
    }
  }

  /** Does what no thread is there for, in the caller's. To be called often. */
  public void maintain() {
    all.forEach(RemoteThreads::doLeft);
  }

  private static void doLeft(final ThreadPoolExecutor pool) {
    while (pool.getPoolSize() == 0) {
      final Runnable task = pool.getQueue().poll();
      if (task == null) {
        return;
      }
      task.run();
    }
  }

  public Executor transfers() {
    return task -> hand(transfers, task);
  }

  public Executor answers() {
    return task -> hand(answers, task);
  }

  public Executor sends() {
    return task -> hand(sends, task);
  }

  /** Lets them do what was handed over, for a limited time, and ends them. Idempotent. */
  @Override
  public void close() {
    all.forEach(ThreadPoolExecutor::shutdown);
    maintain();
    all.forEach(RemoteThreads::awaitEnd);
  }

  /** Also for a caller that was interrupted: what the threads use is freed behind this. */
  private static void awaitEnd(final ThreadPoolExecutor executor) {
    if (!Deadline.in(STOP_LIMIT)
        .await(
            executor::isTerminated,
            millis -> executor.awaitTermination(millis, TimeUnit.MILLISECONDS))) {
      ShuffleCode.SERVING_NOT_ENDED
          .says("threads that serve other nodes did not end at shutdown")
          .at(String.valueOf(executor))
          .warn(LOG);
    }
  }
}
