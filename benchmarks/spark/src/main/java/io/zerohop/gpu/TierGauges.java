package io.zerohop.gpu;

import io.zerohop.workload.ScalaLists;
import java.util.Collections;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.spark.SparkEnv;
import org.apache.spark.api.java.JavaSparkContext;
import org.apache.spark.metrics.source.Source;

/**
 * What Zerohop's executors say of their tiers, and of map outputs that were published before their
 * copies had ended; summed over those that answer.
 */
record TierGauges(Map<String, Long> sums) {
  private static final List<String> NAMES =
      List.of(
          "pool.device.peak.bytes",
          "pool.device.shrunk.bytes",
          "pool.device.borrowed.peak.bytes",
          "pool.device.borrowed.written.bytes",
          "pool.device.recalled.segments",
          "spill.host.bytes",
          "spill.host.nanos",
          "spill.files.bytes",
          "spill.files.nanos",
          "files.bytes",
          "commits.async",
          "fetch.unready");
  private static final int TASKS_EACH = 4;
  private static final long HOLD_MS = 20;

  private record Answer(String executor, Map<String, Long> values)
      implements java.io.Serializable {}

  /** Asks every executor, by more tasks than run at a time. */
  static TierGauges ask(final JavaSparkContext spark) {
    final int tasks = TASKS_EACH * spark.defaultParallelism();
    final Map<String, Map<String, Long>> answers = new HashMap<>();
    spark
        .parallelize(Collections.nCopies(tasks, 0), tasks)
        .map(nothing -> answer())
        .collect()
        .forEach(answer -> answers.put(answer.executor, answer.values));
    final Map<String, Long> sums = new HashMap<>();
    answers
        .values()
        .forEach(each -> each.forEach((name, value) -> sums.merge(name, value, Long::sum)));
    return new TierGauges(sums);
  }

  private static Answer answer() throws InterruptedException {
    Thread.sleep(HOLD_MS);
    final Map<String, Long> values = new HashMap<>();
    for (final Source source :
        ScalaLists.get(
            Source.class, SparkEnv.get().metricsSystem(), "getSourcesByName", "zerohop")) {
      for (final String name : NAMES) {
        if (source.metricRegistry().getGauges().get(name) != null) {
          values.put(name, (Long) source.metricRegistry().getGauges().get(name).getValue());
        }
      }
    }
    return new Answer(SparkEnv.get().executorId(), values);
  }

  /** Adds what has been counted since an earlier answer; peaks as they are. */
  void put(final Map<String, Object> row, final TierGauges before) {
    for (final String name : NAMES) {
      final long then = name.contains("peak") ? 0 : before.sums.getOrDefault(name, 0L);
      row.put(name.replace('.', '_'), sums.getOrDefault(name, 0L) - then);
    }
  }
}
