package io.zerohop.spark.versions;

import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.Supplier;
import org.apache.spark.api.java.JavaSparkContext;
import org.apache.spark.scheduler.AccumulableInfo;
import org.apache.spark.scheduler.SparkListener;
import org.apache.spark.scheduler.SparkListenerStageCompleted;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.SparkSession;
import scala.Tuple2;
import scala.collection.Iterator;

/**
 * One RDD shuffle and one SQL shuffle, in bytecode that runs on every supported Spark and Scala
 * version. Prints one line of {@code name=value} pairs that {@code VersionSuite} checks.
 */
public final class ShuffleApp {
  private static final int RECORDS = 20_000;
  private static final int KEYS = 100;

  private ShuffleApp() {}

  /**
   * Runs both shuffles on the cluster that spark-submit was given.
   *
   * @param args none
   */
  public static void main(final String[] args) {
    final SparkSession spark = SparkSession.builder().appName("zerohop-versions").getOrCreate();
    final Supplier<String> report;
    try {
      report = run(spark);
    } finally {
      spark.stop();
    }
    System.out.println(report.get());
  }

  /**
   * Runs both shuffles.
   *
   * @return the line; it is whole when the session has stopped, which waits until the listener has
   *     seen every stage
   */
  static Supplier<String> run(final SparkSession spark) {
    final Bytes bytes = new Bytes();
    spark.sparkContext().addSparkListener(bytes);
    final long rdd = sumByKey(new JavaSparkContext(spark.sparkContext()));
    final Row sql =
        spark
            .sql(
                "SELECT count(*), sum(s) FROM (SELECT id % 1000 AS k, sum(id) AS s"
                    + " FROM range(0, 100000, 1, 4) GROUP BY id % 1000)")
            .collectAsList()
            .get(0);
    return () ->
        String.format(
                Locale.ROOT,
                "shuffle-app: version=%s rdd=%d groups=%d sum=%d",
                spark.version(),
                rdd,
                sql.getLong(0),
                sql.getLong(1))
            + bytes;
  }

  private static long sumByKey(final JavaSparkContext context) {
    final List<Tuple2<Integer, Integer>> pairs = new ArrayList<>(RECORDS);
    for (int i = 0; i < RECORDS; i++) {
      pairs.add(new Tuple2<>(i % KEYS, i));
    }
    final Map<Integer, Integer> sums =
        context.parallelizePairs(pairs, 4).reduceByKey(Integer::sum, 4).collectAsMap();
    if (sums.size() != KEYS) {
      throw new IllegalStateException("expected " + KEYS + " keys, got " + sums.size());
    }
    return sums.values().stream().mapToLong(Integer::longValue).sum();
  }

  /** The plugin's accumulators; a stage reports their values up to then, so the last counts. */
  private static final class Bytes extends SparkListener {
    private final Map<String, Long> totals = new ConcurrentHashMap<>();

    @Override
    public void onStageCompleted(final SparkListenerStageCompleted completed) {
      final Iterator<AccumulableInfo> infos = completed.stageInfo().accumulables().valuesIterator();
      while (infos.hasNext()) {
        final AccumulableInfo info = infos.next();
        if (info.name().isDefined() && info.name().get().startsWith("zerohop.")) {
          final long value = Long.parseLong(info.value().get().toString());
          totals.merge(info.name().get(), value, Long::max);
        }
      }
    }

    @Override
    public String toString() {
      final StringBuilder text = new StringBuilder();
      totals.forEach((name, value) -> text.append(' ').append(name).append('=').append(value));
      return text.toString();
    }
  }
}
