package io.zerohop.gpu;

import io.zerohop.workload.ScalaLists;
import java.io.IOException;
import java.lang.management.ManagementFactory;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Collections;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.Callable;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import javax.management.JMException;
import javax.management.ObjectName;
import org.apache.spark.SparkEnv;
import org.apache.spark.api.java.JavaSparkContext;
import org.apache.spark.metrics.source.Source;

/** What executors say of themselves, summed over those that answer. */
final class ExecutorGauges {
  /** Of Zerohop's tiers, and of map outputs that were published before their copies had ended. */
  private static final List<String> TIERS =
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

  /** Of Zerohop's pools, now. */
  private static final List<String> POOLS =
      List.of("pool.reserved.bytes", "pool.used.bytes", "pool.device.used.bytes");

  private static final int TASKS_EACH = 4;
  private static final long HOLD_MS = 20;
  private static final long KIB = 1024;

  /** Classes of fewer bytes than this in an executor are not told. */
  private static final long LARGE_CLASS_BYTES = 32 * KIB;

  /** A line of the histogram: its number, instances, bytes, class and module. */
  private static final Pattern CLASS_LINE =
      Pattern.compile("\\s*\\d+:\\s+\\d+\\s+(\\d+)\\s+(\\S+).*");

  private record Answer(String executor, Map<String, Long> values)
      implements java.io.Serializable {}

  /** What an executor is asked. */
  @FunctionalInterface
  private interface Question extends Callable<Map<String, Long>>, java.io.Serializable {}

  /** An executor's answer to the question that was asked last. */
  private static final class Last {
    private long round;
    private Map<String, Long> values = Map.of();
  }

  private static final Last LAST = new Last();

  private ExecutorGauges() {}

  /** Zerohop's tiers. */
  static Map<String, Long> tiers(final JavaSparkContext spark) {
    return sums(spark, () -> gauges(TIERS));
  }

  /** Bytes of objects on the Java heaps that are reachable, by class; of large classes only. */
  static Map<String, Long> classes(final JavaSparkContext spark) {
    return new TreeMap<>(sums(spark, ExecutorGauges::classes));
  }

  /** Adds what tiers have counted since an earlier answer; peaks as they are. */
  static void putTiers(
      final Map<String, Object> row, final Map<String, Long> before, final Map<String, Long> now) {
    for (final String name : TIERS) {
      final long then = name.contains("peak") ? 0 : before.getOrDefault(name, 0L);
      row.put(name.replace('.', '_'), now.getOrDefault(name, 0L) - then);
    }
  }

  /**
   * What the executors hold: resident bytes of their processes, the Java heap after a collection,
   * and Zerohop's pools.
   */
  static Map<String, Long> memory(final JavaSparkContext spark) {
    final Map<String, Long> found = new TreeMap<>();
    sums(spark, ExecutorGauges::process)
        .forEach((name, value) -> found.put(name.replace('.', '_'), value));
    return found;
  }

  /** Asks every executor once, by more tasks than run at a time. */
  private static Map<String, Long> sums(final JavaSparkContext spark, final Question question) {
    final int tasks = TASKS_EACH * spark.defaultParallelism();
    final Map<String, Map<String, Long>> answers = new HashMap<>();
    final long round = System.nanoTime();
    spark
        .parallelize(Collections.nCopies(tasks, 0), tasks)
        .map(nothing -> answer(round, question))
        .collect()
        .forEach(answer -> answers.put(answer.executor, answer.values));
    final Map<String, Long> sums = new HashMap<>();
    answers
        .values()
        .forEach(each -> each.forEach((name, value) -> sums.merge(name, value, Long::sum)));
    return sums;
  }

  private static Answer answer(final long round, final Question question) throws Exception {
    Thread.sleep(HOLD_MS);
    synchronized (LAST) {
      if (LAST.round != round) {
        LAST.values = question.call();
        LAST.round = round;
      }
      return new Answer(SparkEnv.get().executorId(), LAST.values);
    }
  }

  private static Map<String, Long> gauges(final List<String> names) {
    final Map<String, Long> values = new HashMap<>();
    for (final Source source :
        ScalaLists.get(
            Source.class, SparkEnv.get().metricsSystem(), "getSourcesByName", "zerohop")) {
      for (final String name : names) {
        if (source.metricRegistry().getGauges().get(name) != null) {
          values.put(name, (Long) source.metricRegistry().getGauges().get(name).getValue());
        }
      }
    }
    return values;
  }

  private static Map<String, Long> process() throws IOException {
    final Map<String, Long> values = gauges(POOLS);
    System.gc();
    values.put("heap.bytes", ManagementFactory.getMemoryMXBean().getHeapMemoryUsage().getUsed());
    values.put("resident.bytes", residentBytes());
    return values;
  }

  private static Map<String, Long> classes() throws JMException {
    final String histogram =
        (String)
            ManagementFactory.getPlatformMBeanServer()
                .invoke(
                    new ObjectName("com.sun.management:type=DiagnosticCommand"),
                    "gcClassHistogram",
                    new Object[] {new String[0]},
                    new String[] {String[].class.getName()});
    final Map<String, Long> values = new HashMap<>();
    histogram
        .lines()
        .map(CLASS_LINE::matcher)
        .filter(Matcher::matches)
        .filter(line -> Long.parseLong(line.group(1)) >= LARGE_CLASS_BYTES)
        .forEach(line -> values.merge(line.group(2), Long.parseLong(line.group(1)), Long::sum));
    return values;
  }

  private static long residentBytes() throws IOException {
    return Files.readAllLines(Path.of("/proc/self/status")).stream()
        .filter(line -> line.startsWith("VmRSS:"))
        .mapToLong(line -> Long.parseLong(line.replaceAll("[^0-9]", "")) * KIB)
        .findFirst()
        .orElse(0);
  }
}
