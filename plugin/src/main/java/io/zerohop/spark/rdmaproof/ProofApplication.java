package io.zerohop.spark.rdmaproof;

import io.zerohop.shuffle.block.BlockPath;
import java.io.IOException;
import java.lang.reflect.InvocationTargetException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.apache.spark.scheduler.AccumulableInfo;
import org.apache.spark.scheduler.SparkListener;
import org.apache.spark.scheduler.SparkListenerTaskEnd;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.SparkSession;

/**
 * The driver of {@link SparkJob}: it repartitions rows, counts them and adds them up, which shows
 * whether each arrived once. By SQL alone, so that RAPIDS takes it where it is on, and so that one
 * class fits all releases of Spark.
 */
public final class ProofApplication {
  private static final int PARTITIONS = 64;
  private static final List<String> PATHS =
      Arrays.stream(BlockPath.values()).map(BlockPath::label).toList();

  private ProofApplication() {}

  /** A text of 16 digits makes a row some 30 bytes; all three sums are known. */
  private static String query(final long rows) {
    return "SELECT count(*), sum(id), sum(length(text)) FROM (SELECT /*+ REPARTITION("
        + PARTITIONS
        + ", id) */ id, lpad(cast(id AS string), 16, '0') AS text FROM range(0, "
        + rows
        + ", 1, "
        + PARTITIONS
        + "))";
  }

  /**
   * Runs the job, and prints one line for the process that started it.
   *
   * @param arguments how many rows
   */
  public static void main(final String[] arguments) throws IOException {
    final long rows = Long.parseLong(arguments[0]);
    final SparkSession spark = SparkSession.builder().appName("zerohop-rdma-proof").getOrCreate();
    try {
      final PathBytes bytes = new PathBytes();
      spark.sparkContext().addSparkListener(bytes);
      final var query = spark.sql(query(rows));
      final Row row = query.collectAsList().get(0);
      final boolean right =
          row.getLong(0) == rows
              && row.getLong(1) == rows * (rows - 1) / 2
              && row.getLong(2) == rows * 16;
      final boolean gpu = query.queryExecution().executedPlan().toString().contains("Gpu");
      final List<String> words = new ArrayList<>();
      words.add(right ? "right" : "wrong");
      words.add(gpu ? "batches of RAPIDS" : "rows");
      spark.stop(); // Listeners have heard all.
      bytes.counts().forEach((path, count) -> words.add(path + " " + count));
      GetWorker.say(words);
    } finally {
      spark.stop();
    }
  }

  /** Bytes that tasks read, by path. Called by Spark's bus. */
  static final class PathBytes extends SparkListener {
    private final Map<String, Long> counts = new TreeMap<>();

    PathBytes() {
      PATHS.forEach(path -> counts.put(path, 0L));
    }

    @Override
    public synchronized void onTaskEnd(final SparkListenerTaskEnd end) {
      final var infos = accumulables(end).iterator();
      while (infos.hasNext()) {
        final AccumulableInfo info = (AccumulableInfo) infos.next();
        for (final String path : PATHS) {
          if (info.name().isDefined()
              && info.update().isDefined()
              && info.name().get().equals("zerohop." + path + ".bytes")) {
            counts.merge(path, Long.parseLong(info.update().get().toString()), Long::sum);
          }
        }
      }
    }

    /** By reflection: the type of a {@code Seq} differs between Scala 2.12 and 2.13. */
    private static scala.collection.Iterable<?> accumulables(final SparkListenerTaskEnd end) {
      try {
        return (scala.collection.Iterable<?>)
            end.taskInfo().getClass().getMethod("accumulables").invoke(end.taskInfo());
      } catch (final NoSuchMethodException | IllegalAccessException | InvocationTargetException e) {
        throw new IllegalStateException("this Spark tells nothing of its tasks", e);
      }
    }

    synchronized Map<String, Long> counts() {
      return new TreeMap<>(counts);
    }
  }
}
