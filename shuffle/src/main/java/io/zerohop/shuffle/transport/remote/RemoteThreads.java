package io.zerohop.shuffle.transport.remote;

import io.zerohop.device.ZerohopException;
import io.zerohop.device.posix.Deadline;
import io.zerohop.device.posix.Threads;
import io.zerohop.shuffle.log.ShuffleCode;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Executor;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.ThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The threads that serve other executors: for own transfers, for responses, and for slow work, so
 * that none waits for another. All of them are there from the beginning: later the system may have
 * none left, and the carrier's own, which hand most of the work over, must not do it. Thread safe.
 */
public final class RemoteThreads implements AutoCloseable {
  private static final Logger LOG = LoggerFactory.getLogger(RemoteThreads.class);

  /** Answers are short. */
  private static final int ANSWERING = 2;

  /** Each may wait for a GPU, or compute checksums and compress at some GB/s. */
  private static final int MAX_WORKING = 4;

  private static final Duration STOP_LIMIT = Duration.ofSeconds(10);

  private final List<ThreadPoolExecutor> all = new ArrayList<>();
  private final ThreadPoolExecutor transfers;
  private final ThreadPoolExecutor answers;
  private final ThreadPoolExecutor sends;

  /**
   * Starts them.
   *
   * @throws ZerohopException (FALLBACK) if the system has not as many left; none stays behind
   */
  public RemoteThreads() {
    boolean done = false;
    try {
      final int working =
          Math.max(2, Math.min(MAX_WORKING, Runtime.getRuntime().availableProcessors() / 4));
      transfers = start("transfers", working);
      answers = start("answers", ANSWERING);
      sends = start("sends", working);
      done = true;
    } finally {
      if (!done) {
        close();
      }
    }
  }

  private ThreadPoolExecutor start(final String name, final int threads) {
    final ThreadPoolExecutor executor =
        new ThreadPoolExecutor(
            threads,
            threads,
            0,
            TimeUnit.SECONDS,
            new LinkedBlockingQueue<>(),
            task -> Threads.daemon(task, "zerohop-" + name));
    all.add(executor);
    executor.prestartAllCoreThreads();
    return executor;
  }

  public Executor transfers() {
    return transfers;
  }

  public Executor answers() {
    return answers;
  }

  public Executor sends() {
    return sends;
  }

  /** Lets them do what was handed over, for a limited time, and ends them. Idempotent. */
  @Override
  public void close() {
    all.forEach(ThreadPoolExecutor::shutdown);
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
