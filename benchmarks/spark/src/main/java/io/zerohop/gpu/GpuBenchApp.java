package io.zerohop.gpu;

import io.zerohop.workload.Outcome;
import io.zerohop.workload.ShuffleMeter;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.spark.api.java.JavaSparkContext;
import org.apache.spark.scheduler.SparkListener;
import org.apache.spark.scheduler.SparkListenerStageCompleted;
import org.apache.spark.scheduler.SparkListenerTaskEnd;
import org.apache.spark.scheduler.StageInfo;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.SparkSession;

/**
 * Times the exchanges of a few queries over generated rows: how long the stages that write a
 * shuffle take, how long those that read one, and the whole query. One application measures one
 * shuffle; a script lets them take turns. Rows go to a file as JSON, one a line, with a checksum of
 * the result by which the shuffles are compared.
 */
public final class GpuBenchApp {
  private static final long LISTENER_LIMIT_MS = 30_000;
  private static final long SETTLE_MS = 300;

  /** An interval of executors' reports, and what they need to travel. */
  private static final long LAST_REPORTS_MS = 6_000;

  private static final String COALESCING = "spark.sql.adaptive.coalescePartitions.enabled";

  private final SparkSession spark;
  private final JavaSparkContext context;
  private final String shuffle;
  private final Path out;
  private final StageTimes times = new StageTimes();
  private final ShuffleMeter meter = new ShuffleMeter();
  private final OverflowMeter overflow = new OverflowMeter();

  private GpuBenchApp(final SparkSession spark, final String shuffle, final Path out) {
    this.spark = spark;
    this.context = new JavaSparkContext(spark.sparkContext());
    this.shuffle = shuffle;
    this.out = out;
    spark.sparkContext().addSparkListener(times);
    spark.sparkContext().addSparkListener(meter);
    spark.sparkContext().addSparkListener(overflow);
  }

  /** Sums the durations of stages by what they do with shuffles. */
  private static final class StageTimes extends SparkListener {
    private long writeMs;
    private long readMs;
    private long bytes;
    private int failedTasks;

    @Override
    public synchronized void onTaskEnd(final SparkListenerTaskEnd end) {
      failedTasks += end.taskInfo().successful() ? 0 : 1;
    }

    @Override
    public synchronized void onStageCompleted(final SparkListenerStageCompleted completed) {
      final StageInfo stage = completed.stageInfo();
      final long ms = (Long) stage.completionTime().get() - (Long) stage.submissionTime().get();
      final long written = stage.taskMetrics().shuffleWriteMetrics().bytesWritten();
      final long read = stage.taskMetrics().shuffleReadMetrics().totalBytesRead();
      // A stage that reads the large exchange writes its partial results to a small one, whose
      // own reader, a single task, is not what is measured.
      if (read > 0 && stage.numTasks() > 1) {
        readMs += ms;
      } else if (read == 0 && written > 0) {
        writeMs += ms;
        bytes += written;
      }
    }

    synchronized void reset() {
      writeMs = 0;
      readMs = 0;
      bytes = 0;
      failedTasks = 0;
    }

    synchronized void put(final Map<String, Object> row) {
      row.put("write_ms", writeMs);
      row.put("read_ms", readMs);
      row.put("exchange_ms", writeMs + readMs);
      row.put("shuffle_bytes", bytes);
      row.put("failed_tasks", failedTasks);
    }
  }

  /** Some queries over one number of map tasks and one of partitions. */
  private record Step(
      int maps,
      String partitions,
      List<String> queries,
      int iterations,
      long millions,
      boolean all) {
    /**
     * Reads {@code partitions:query,query:iterations:millions}; the last two may be left out. The
     * first may be {@code maps x partitions}, without blanks. A fifth, {@code all}, has partitions
     * read as they are, and not coalesced.
     */
    static Step of(final String text, final int maps, final int iterations, final long millions) {
      final String[] parts = text.split(":");
      final String[] shape = parts[0].split("x");
      return new Step(
          shape.length > 1 ? Integer.parseInt(shape[0]) : maps,
          shape[shape.length - 1],
          List.of(parts[1].split(",")),
          parts.length > 2 ? Integer.parseInt(parts[2]) : iterations,
          parts.length > 3 ? Long.parseLong(parts[3]) : millions,
          parts.length > 4 && parts[4].equals("all"));
    }
  }

  /**
   * @param args name of the shuffle, file to append to, millions of rows, map tasks, iterations,
   *     and what to run, as {@link Step#of} reads it, as often as wanted
   */
  public static void main(final String[] args) throws Exception {
    final SparkSession spark = SparkSession.builder().getOrCreate();
    final GpuBenchApp app = new GpuBenchApp(spark, args[0], Path.of(args[1]));
    for (final String text : args[5].trim().split("\\s+")) {
      final Step step =
          Step.of(
              text, Integer.parseInt(args[3]), Integer.parseInt(args[4]), Long.parseLong(args[2]));
      spark.conf().set("spark.sql.shuffle.partitions", step.partitions);
      if (step.all) {
        spark.conf().set(COALESCING, "false");
      }
      for (final String name : step.queries) {
        for (int i = 0; i <= step.iterations; i++) {
          app.run(step, name, i);
        }
      }
      if (step.all) {
        spark.conf().unset(COALESCING);
      }
    }
    if (spark.sparkContext().getConf().getBoolean("spark.eventLog.enabled", false)) {
      Thread.sleep(LAST_REPORTS_MS); // Whoever keeps the log compares it with what tasks said.
    }
    spark.stop();
  }

  private void run(final Step step, final String name, final int iteration) throws Exception {
    final String query =
        GpuExchanges.query(name, step.millions * 1_000_000, step.maps, step.partitions);
    meter.reset();
    overflow.reset();
    final Map<String, Long> before = ExecutorGauges.tiers(context);
    times.reset();
    final long start = System.nanoTime();
    final List<Row> result = spark.sql(query).collectAsList();
    final double seconds = (System.nanoTime() - start) / 1e9;
    spark.sparkContext().listenerBus().waitUntilEmpty(LISTENER_LIMIT_MS);
    final Map<String, Object> row = new LinkedHashMap<>();
    row.put("case", shuffle);
    row.put("pool", spark.conf().get("spark.rapids.memory.gpu.pool", "ASYNC"));
    row.put("executors", spark.sparkContext().getExecutorMemoryStatus().size() - 1);
    row.put("query", name);
    row.put("million_rows", step.millions);
    row.put("maps", step.maps);
    row.put("partitions", Integer.parseInt(step.partitions));
    row.put("coalescing", Boolean.parseBoolean(spark.conf().get(COALESCING, "true")));
    row.put("iteration", iteration);
    row.put("seconds", seconds);
    times.put(row);
    final Outcome outcome = meter.outcome(name, result.size(), seconds);
    row.put("local_bytes", outcome.localBytes());
    row.put("peer_bytes", outcome.peerBytes());
    row.put("ucx_bytes", outcome.ucxBytes());
    row.put("sent_bytes", outcome.sentBytes());
    row.put("staged_bytes", outcome.stagedBytes());
    row.put("overflow_bytes", overflow.spilledBytes());
    row.put("overflow_file_bytes", overflow.fileBytes());
    ExecutorGauges.putTiers(row, before, ExecutorGauges.tiers(context));
    row.put("result", new ArrayList<>(result).toString());
    JsonLines.append(out, row);
    System.gc(); // Lets Spark drop the shuffle's blocks.
    Thread.sleep(SETTLE_MS);
  }
}
