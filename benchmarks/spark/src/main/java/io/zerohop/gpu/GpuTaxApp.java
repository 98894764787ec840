package io.zerohop.gpu;

import java.nio.file.Path;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.SparkSession;

/**
 * What an exchange itself costs: the repartition of {@link GpuExchanges} beside the same query of
 * the same rows where nothing is moved, in turns. The difference is the exchange's, with the tasks
 * that Spark has to schedule for it; what its tasks spent their time with is beside it.
 */
public final class GpuTaxApp {
  private static final long LISTENER_LIMIT_MS = 30_000;

  private final SparkSession spark;
  private final TaskTimes times = new TaskTimes();

  private GpuTaxApp(final SparkSession spark) {
    this.spark = spark;
    spark.sparkContext().addSparkListener(times);
  }

  /**
   * @param args name of the shuffle, file to append to, millions of rows, iterations, and shapes as
   *     {@code maps x partitions} without blanks
   */
  public static void main(final String[] args) throws Exception {
    final SparkSession spark = SparkSession.builder().getOrCreate();
    final GpuTaxApp app = new GpuTaxApp(spark);
    for (final String shape : args[4].trim().split("\\s+")) {
      final int maps = Integer.parseInt(shape.split("x")[0]);
      final String partitions = shape.split("x")[1];
      spark.conf().set("spark.sql.shuffle.partitions", partitions);
      for (int i = 0; i <= Integer.parseInt(args[3]); i++) {
        for (final String query : List.of("unmoved", "repartition")) {
          final Map<String, Object> row = new LinkedHashMap<>();
          row.put("case", args[0]);
          row.put("query", query);
          row.put("million_rows", Long.parseLong(args[2]));
          row.put("maps", maps);
          row.put("partitions", Integer.parseInt(partitions));
          row.put("iteration", i);
          app.run(
              GpuExchanges.query(query, Long.parseLong(args[2]) * 1_000_000, maps, partitions),
              row);
          JsonLines.append(Path.of(args[1]), row);
        }
      }
    }
    spark.stop();
  }

  private void run(final String query, final Map<String, Object> row) throws Exception {
    times.reset();
    final long start = System.nanoTime();
    final List<Row> result = spark.sql(query).collectAsList();
    row.put("seconds", (System.nanoTime() - start) / 1e9);
    spark.sparkContext().listenerBus().waitUntilEmpty(LISTENER_LIMIT_MS);
    row.put("tasks", times.tasks());
    row.put("task_ms", times.millis());
    row.put("result", result.toString());
    System.gc(); // Lets Spark drop the shuffle's blocks.
  }
}
