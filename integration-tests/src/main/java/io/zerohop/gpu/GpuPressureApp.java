package io.zerohop.gpu;

import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.spark.api.java.JavaSparkContext;
import org.apache.spark.scheduler.SparkListener;
import org.apache.spark.scheduler.SparkListenerTaskEnd;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.SparkSession;

/**
 * Fills the pool in GPU memory with a shuffle, takes nearly all else, and then needs more than is
 * left: first by one allocation of RAPIDS', then by a query. For one executor with one GPU. Exits
 * with 1 if it did not go as it should.
 */
public final class GpuPressureApp {
  private static final long LEFT_BYTES = 512L << 20;
  private static final long MORE_BYTES = 1L << 30;

  /** Longer than {@code spark.zerohop.spill.idle}, after which a shuffle is cold. */
  private static final long COLD_MS = 5_000;

  private static final long LISTENER_LIMIT_MS = 30_000;
  private static final int PARTITIONS = 16;
  private static final String SHRUNK = "pool.device.shrunk.bytes";

  private final SparkSession spark;
  private final JavaSparkContext context;
  private final OverflowMeter overflow = new OverflowMeter();
  private final FailedTasks failures = new FailedTasks();
  private final Map<String, Object> row = new LinkedHashMap<>();
  private final List<String> problems = new ArrayList<>();
  private final String way;

  private GpuPressureApp(final SparkSession spark, final String way) {
    this.spark = spark;
    this.way = way;
    this.context = new JavaSparkContext(spark.sparkContext());
    spark.sparkContext().addSparkListener(overflow);
    spark.sparkContext().addSparkListener(failures);
    row.put("case", way);
  }

  private static final class FailedTasks extends SparkListener {
    private int count;

    @Override
    public synchronized void onTaskEnd(final SparkListenerTaskEnd end) {
      count += end.taskInfo().successful() ? 0 : 1;
    }

    synchronized int count() {
      return count;
    }
  }

  /** What is done on the executor. */
  @FunctionalInterface
  private interface Step<T> extends java.io.Serializable {
    T run() throws Exception;
  }

  /**
   * @param args file to append to; {@code gives} where the pool is to give memory back, {@code off}
   *     where it is kept from that, {@code limit} where that would be of no use, since RAPIDS has
   *     reached its own limit; millions of rows of the shuffle that fills the pool, and of the
   *     query
   */
  public static void main(final String[] args) throws Exception {
    final SparkSession spark = SparkSession.builder().getOrCreate();
    final GpuPressureApp app = new GpuPressureApp(spark, args[1]);
    try {
      app.run(Long.parseLong(args[2]) * 1_000_000, Long.parseLong(args[3]) * 1_000_000);
    } finally {
      app.row.put("problems", app.problems);
      JsonLines.append(Path.of(args[0]), app.row);
      System.out.println(app.row);
      spark.stop();
    }
    if (!app.problems.isEmpty()) {
      System.exit(1);
    }
  }

  private void run(final long fill, final long rows) throws Exception {
    final String query = query(rows, PARTITIONS / 2);
    final String expected = spark.sql(query).collectAsList().toString();
    System.gc(); // Lets Spark drop the shuffle's blocks.
    Thread.sleep(COLD_MS);
    final Dataset<Row> kept = spark.sql(query(fill, PARTITIONS));
    final String keptExpected = kept.collectAsList().toString();
    Thread.sleep(COLD_MS);
    row.put("pool_bytes", gauge("pool.device.peak.bytes"));
    check(gauge(SHRUNK) == 0, "the pool gave memory back before anybody needed it");
    try {
      allocate();
      if (!way.equals("limit")) {
        runUnderPressure(query, expected);
      }
      onExecutor(
          () -> {
            Ballast.drop();
            return 0;
          });
    } finally {
      spark.sparkContext().listenerBus().waitUntilEmpty(LISTENER_LIMIT_MS);
      row.put("failed_tasks", failures.count());
    }
    check(kept.collectAsList().toString().equals(keptExpected), "blocks that moved are wrong");
    check(way.equals("off") || failures.count() == 0, failures.count() + " tasks failed");
  }

  private static String query(final long rows, final int maps) {
    return GpuExchanges.query("repartition", rows, maps, Integer.toString(PARTITIONS));
  }

  /** More than is left, and less than the pool could add to that. */
  private void allocate() throws Exception {
    row.put("ballast_bytes", onExecutor(() -> Ballast.allBut(LEFT_BYTES)));
    final String failure = onExecutor(() -> Ballast.attempt(LEFT_BYTES + MORE_BYTES));
    final long shrunk = gauge(SHRUNK);
    row.put("allocation", failure.isEmpty() ? "done" : failure);
    row.put("allocation_shrunk_bytes", shrunk);
    if (way.equals("gives")) {
      check(failure.isEmpty(), "RAPIDS got no memory although the pool had some: " + failure);
      check(shrunk > 0, "the pool gave nothing back");
    } else {
      check(!failure.isEmpty(), "there was memory enough: this shows nothing");
      check(shrunk == 0, "the pool gave " + shrunk + " bytes back for nothing");
    }
  }

  private void runUnderPressure(final String query, final String expected) throws Exception {
    onExecutor(() -> Ballast.allBut(LEFT_BYTES));
    final long before = gauge(SHRUNK);
    overflow.reset();
    final long start = System.nanoTime();
    String found;
    try {
      found = spark.sql(query).collectAsList().toString();
    } catch (final Exception e) {
      found = e.toString().lines().findFirst().orElse("");
    }
    row.put("query_seconds", (System.nanoTime() - start) / 1e9);
    row.put("query", found.equals(expected) ? "equal" : found);
    row.put("query_shrunk_bytes", gauge(SHRUNK) - before);
    spark.sparkContext().listenerBus().waitUntilEmpty(LISTENER_LIMIT_MS);
    row.put("query_spilled_bytes", overflow.spilledBytes());
    if (way.equals("gives")) {
      check(found.equals(expected), "the query gave " + found + " instead of " + expected);
      check(gauge(SHRUNK) > before, "the query got no memory of the pool");
    } else {
      check(gauge(SHRUNK) == 0, "the pool gave memory back although it must not");
    }
  }

  private void check(final boolean good, final String problem) {
    if (!good) {
      problems.add(problem);
    }
  }

  private long gauge(final String name) {
    return TierGauges.ask(context).sums().getOrDefault(name, 0L);
  }

  private <T> T onExecutor(final Step<T> step) {
    return context.parallelize(List.of(0), 1).map(nothing -> step.run()).first();
  }
}
