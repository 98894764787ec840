package io.zerohop.gpu;

import io.zerohop.workload.Answer;
import io.zerohop.workload.PlanShape;
import io.zerohop.workload.Workload;
import java.time.Duration;
import java.util.List;
import java.util.Locale;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.FutureTask;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.execution.SparkPlan;

/**
 * Runs queries, one at a time, and cancels one that takes too long, so that the others have their
 * turn. For one thread.
 */
final class QueryRunner {
  private static final long LISTENER_LIMIT_MS = 30_000;
  private static final long CANCEL_LIMIT_MS = 20_000;
  private static final long SETTLE_MS = 200;
  private static final double NANOS_PER_SECOND = 1e9;

  private final SparkSession spark;
  private final Duration limit;
  private int runs;

  QueryRunner(final SparkSession spark, final Duration limit) {
    this.spark = spark;
    this.limit = limit;
  }

  /**
   * Runs a query. All listeners have heard of its stages when this returns.
   *
   * @throws ExecutionException if it failed
   * @throws TimeoutException if it was cancelled
   */
  QueryRun run(final Workload workload)
      throws ExecutionException, TimeoutException, InterruptedException {
    runs++;
    final String group = "query-" + runs;
    final FutureTask<QueryRun> task = new FutureTask<>(() -> collect(group, workload));
    final Thread thread = new Thread(task, group);
    thread.setDaemon(true);
    thread.start();
    final QueryRun run = await(task, thread);
    spark.sparkContext().listenerBus().waitUntilEmpty(LISTENER_LIMIT_MS);
    return run;
  }

  private QueryRun await(final FutureTask<QueryRun> task, final Thread thread)
      throws ExecutionException, TimeoutException, InterruptedException {
    try {
      return task.get(limit.toMillis(), TimeUnit.MILLISECONDS);
    } catch (final TimeoutException e) {
      spark.sparkContext().cancelJobGroupAndFutureJobs(thread.getName());
      thread.join(CANCEL_LIMIT_MS);
      throw new TimeoutException(
          String.format(
              Locale.ROOT,
              "took longer than %d s%s",
              limit.toSeconds(),
              thread.isAlive() ? " and cannot be cancelled" : ""));
    }
  }

  private QueryRun collect(final String group, final Workload workload) {
    spark.sparkContext().setJobGroup(group, group, true);
    final long start = System.nanoTime();
    final Dataset<Row> result = spark.sql(workload.query());
    final List<Row> rows = result.collectAsList();
    final double seconds = (System.nanoTime() - start) / NANOS_PER_SECOND;
    final SparkPlan plan = result.queryExecution().executedPlan();
    return new QueryRun(
        Answer.of(workload, result, rows), seconds, ExchangeCount.of(plan), PlanShape.of(plan));
  }

  /**
   * Spark drops a shuffle's blocks when the driver's garbage collector finds its handle. That is
   * done here between queries, so that none pays for those before it.
   */
  void forgetShuffles() throws InterruptedException {
    System.gc();
    Thread.sleep(SETTLE_MS);
  }

  /** What to write down about a query that did not run to its end. */
  static String reason(final Exception failure) {
    final Throwable cause =
        failure instanceof ExecutionException && failure.getCause() != null
            ? failure.getCause()
            : failure;
    return cause.toString().lines().findFirst().orElse("");
  }
}
