package io.zerohop.workload;

import java.util.List;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;

/** Writes all tables at once: no core waits for the last part of one before the next begins. */
final class AtOnce {
  private static final long LIMIT_MINUTES = 30;

  private AtOnce() {}

  /**
   * Returns when all are written.
   *
   * @param writes one for each table; each has a thread of its own
   * @throws ExecutionException if one fails
   * @throws java.util.concurrent.CancellationException if they take longer than half an hour
   */
  static void run(final List<Callable<Void>> writes)
      throws InterruptedException, ExecutionException {
    final ExecutorService threads = Executors.newFixedThreadPool(writes.size());
    try {
      for (final Future<Void> write : threads.invokeAll(writes, LIMIT_MINUTES, TimeUnit.MINUTES)) {
        write.get();
      }
    } finally {
      threads.shutdownNow();
    }
  }
}
