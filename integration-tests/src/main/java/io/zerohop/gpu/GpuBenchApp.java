package io.zerohop.gpu;

import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.spark.scheduler.SparkListener;
import org.apache.spark.scheduler.SparkListenerStageCompleted;
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

  private GpuBenchApp() {}

  /** Sums the durations of stages by what they do with shuffles. */
  private static final class StageTimes extends SparkListener {
    private long writeMs;
    private long readMs;
    private long bytes;

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
    }

    synchronized void put(final Map<String, Object> row) {
      row.put("write_ms", writeMs);
      row.put("read_ms", readMs);
      row.put("exchange_ms", writeMs + readMs);
      row.put("shuffle_bytes", bytes);
    }
  }

  /**
   * @param args name of the shuffle, file to append to, millions of rows, map tasks, iterations,
   *     and what to run: a partition count, a colon and queries separated by commas, as often as
   *     wanted
   */
  public static void main(final String[] args) throws Exception {
    final String shuffle = args[0];
    final Path out = Path.of(args[1]);
    final long rows = Long.parseLong(args[2]) * 1_000_000;
    final int maps = Integer.parseInt(args[3]);
    final int iterations = Integer.parseInt(args[4]);
    final SparkSession spark = SparkSession.builder().getOrCreate();
    final StageTimes times = new StageTimes();
    spark.sparkContext().addSparkListener(times);
    for (final String step : args[5].trim().split("\\s+")) {
      final String partitions = step.substring(0, step.indexOf(':'));
      spark.conf().set("spark.sql.shuffle.partitions", partitions);
      for (final String name : step.substring(partitions.length() + 1).split(",")) {
        final String query = query(name, rows, maps, partitions);
        for (int i = 0; i <= iterations; i++) {
          times.reset();
          final long start = System.nanoTime();
          final List<Row> result = spark.sql(query).collectAsList();
          final double seconds = (System.nanoTime() - start) / 1e9;
          spark.sparkContext().listenerBus().waitUntilEmpty(LISTENER_LIMIT_MS);
          final Map<String, Object> row = new LinkedHashMap<>();
          row.put("case", shuffle);
          row.put("query", name);
          row.put("million_rows", Long.parseLong(args[2]));
          row.put("partitions", Integer.parseInt(partitions));
          row.put("iteration", i);
          row.put("seconds", seconds);
          times.put(row);
          row.put("result", new ArrayList<>(result).toString());
          JsonLines.append(out, row);
          System.gc(); // Lets Spark drop the shuffle's blocks.
          Thread.sleep(SETTLE_MS);
        }
      }
    }
    spark.stop();
  }

  private static String query(
      final String name, final long rows, final int maps, final String partitions) {
    final String all = "range(0, " + rows + ", 1, " + maps + ")";
    final String half = "range(0, " + rows / 2 + ", 1, " + maps + ")";
    return switch (name) {
      case "repartition" ->
          "SELECT count(*), sum(k), max(a), min(b), max(c), sum(d), max(e), sum(f) FROM (SELECT /*+"
              + " REPARTITION("
              + partitions
              + ", k) */ * FROM (SELECT xxhash64(id) AS k, id AS a, id * 3 AS b, id * 5 AS c,"
              + " id % 1000 AS d, id * 7 AS e, id + 1 AS f FROM "
              + all
              + "))";
      case "group_by" ->
          "SELECT count(*), sum(n), max(s), max(m) FROM (SELECT g, count(*) AS n, sum(v) AS s,"
              + " max(w) AS m FROM (SELECT pmod(xxhash64(id), "
              + rows * 2
              + ") AS g, id AS v, id * 3 AS w FROM "
              + all
              + ") GROUP BY g)";
      case "join" ->
          "SELECT count(*), sum(v), max(w), sum(x) FROM (SELECT xxhash64(id) AS k, id AS v, id * 3"
              + " AS w FROM "
              + half
              + ") JOIN (SELECT xxhash64(id) AS k, id % 100 AS x, id * 7 AS y FROM "
              + half
              + ") USING (k)";
      default -> throw new IllegalArgumentException("no query '" + name + "'");
    };
  }
}
