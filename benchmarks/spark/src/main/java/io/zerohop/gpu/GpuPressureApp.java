package io.zerohop.gpu;

import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.spark.api.java.JavaRDD;
import org.apache.spark.api.java.JavaSparkContext;
import org.apache.spark.scheduler.SparkListener;
import org.apache.spark.scheduler.SparkListenerTaskEnd;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.InternalRow;

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

  /** RAPIDS does not say how much it wants: what one request may cost where nothing can help. */
  private static final long MAX_NEEDLESS_BYTES = 1L << 30;

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
   *     reached its own limit, {@code reserve} where RAPIDS leaves less free than the pool may
   *     take, to see whether they meet; millions of rows of the shuffle that fills the pool, and of
   *     the query
   */
  public static void main(final String[] args) throws Exception {
    final SparkSession spark = SparkSession.builder().getOrCreate();
    final GpuPressureApp app = new GpuPressureApp(spark, args[1]);
    try {
      app.run(Long.parseLong(args[2]) * 1_000_000, Long.parseLong(args[3]) * 1_000_000);
    } catch (final Exception e) {
      app.problems.add(firstLine(e));
      throw e;
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
    final JavaRDD<InternalRow> kept = exchange(fill);
    final long keptExpected = sum(kept);
    Thread.sleep(COLD_MS);
    final long filled = gauge("pool.device.peak.bytes");
    row.put("pool_bytes", filled);
    check(filled > 0, "nothing lies in GPU memory");
    check(way.equals("reserve") || filled > 2 * MORE_BYTES, "the pool has too little to give");
    try {
      takeNearlyAll();
      if (!way.equals("reserve")) {
        allocate();
      }
      if (way.equals("gives") || way.equals("off")) {
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
    check(sum(kept) == keptExpected, "blocks that moved are wrong");
    check(way.equals("off") || failures.count() == 0, failures.count() + " tasks failed");
  }

  /** Rows of 0.9 kB behind an exchange, whose blocks stay as long as this is kept. */
  private JavaRDD<InternalRow> exchange(final long rows) {
    return spark
        .sql(
            "SELECT /*+ REPARTITION("
                + PARTITIONS
                + ", id) */ id, repeat(CAST(id AS STRING), 128) AS s FROM range(0, "
                + rows
                + ", 1, "
                + PARTITIONS
                + ")")
        .queryExecution()
        .toRdd()
        .toJavaRDD();
  }

  /** Reads all rows again, from the same blocks. */
  private static long sum(final JavaRDD<InternalRow> rows) {
    return rows.map(row -> row.getLong(0) * 31 + row.getUTF8String(1).hashCode()).reduce(Long::sum);
  }

  private static String query(final long rows, final int maps) {
    return GpuExchanges.query("repartition", rows, maps, Integer.toString(PARTITIONS));
  }

  /** Nobody is refused anything yet, unless the pool holds what RAPIDS counts on. */
  private void takeNearlyAll() throws Exception {
    row.put("ballast_bytes", onExecutor(() -> Ballast.allBut(LEFT_BYTES)));
    final long shrunk = gauge(SHRUNK);
    row.put("ballast_shrunk_bytes", shrunk);
    check(way.equals("reserve") || shrunk == 0, "the pool gave memory back before it was needed");
  }

  /** More than is left, and less than the pool could add to that. */
  private void allocate() throws Exception {
    final String failure = onExecutor(() -> Ballast.attempt(LEFT_BYTES + MORE_BYTES));
    final long shrunk = gauge(SHRUNK);
    row.put("allocation", failure.isEmpty() ? "done" : failure);
    row.put("allocation_shrunk_bytes", shrunk);
    if (way.equals("gives")) {
      check(failure.isEmpty(), "RAPIDS got no memory although the pool had some: " + failure);
      check(shrunk > 0, "the pool gave nothing back");
    } else {
      check(!failure.isEmpty(), "there was memory enough: this shows nothing");
      check(
          shrunk <= (way.equals("off") ? 0 : MAX_NEEDLESS_BYTES),
          "the pool gave " + shrunk + " bytes back for nothing");
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
      found = firstLine(e);
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

  private static String firstLine(final Exception e) {
    return e.toString().lines().findFirst().orElse("");
  }

  private void check(final boolean good, final String problem) {
    if (!good) {
      problems.add(problem);
    }
  }

  private long gauge(final String name) {
    return ExecutorGauges.tiers(context).getOrDefault(name, 0L);
  }

  private <T> T onExecutor(final Step<T> step) {
    return context.parallelize(List.of(0), 1).map(nothing -> step.run()).first();
  }
}
