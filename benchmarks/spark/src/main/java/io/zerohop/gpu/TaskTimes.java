package io.zerohop.gpu;

import io.zerohop.workload.ScalaLists;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import org.apache.spark.executor.TaskMetrics;
import org.apache.spark.scheduler.AccumulableInfo;
import org.apache.spark.scheduler.SparkListener;
import org.apache.spark.scheduler.SparkListenerTaskEnd;

/**
 * What the tasks of a query have spent their time with, by Spark's metrics and those of the query's
 * operators, added up. Spark's listener thread fills it; the caller lets that thread run dry before
 * it reads.
 */
final class TaskTimes extends SparkListener {
  private static final double NANOS_PER_MS = 1e6;
  private static final Set<String> OF_SPARK = Set.of("fetch wait time", "shuffle write time");

  private final Map<String, Double> millis = new TreeMap<>();
  private int tasks;

  @Override
  public synchronized void onTaskEnd(final SparkListenerTaskEnd end) {
    final TaskMetrics metrics = end.taskMetrics();
    if (metrics == null) {
      return;
    }
    tasks++;
    add("task", (double) end.taskInfo().duration());
    add("run", (double) metrics.executorRunTime());
    add("deserialize task", (double) metrics.executorDeserializeTime());
    add("shuffle write", metrics.shuffleWriteMetrics().writeTime() / NANOS_PER_MS);
    add("fetch wait", (double) metrics.shuffleReadMetrics().fetchWaitTime());
    for (final AccumulableInfo next :
        ScalaLists.get(AccumulableInfo.class, end.taskInfo(), "accumulables")) {
      if (next.name().isDefined()
          && next.update().isDefined()
          && next.update().get() instanceof Long nanos
          && isTime(next)) {
        add(next.name().get(), nanos / NANOS_PER_MS);
      }
    }
  }

  /** Of RAPIDS' operators, which have nanoseconds; an exchange has Spark's once more, in others. */
  private static boolean isTime(final AccumulableInfo metric) {
    final String name = metric.name().get();
    return name.endsWith("time") && !name.startsWith("internal.") && !OF_SPARK.contains(name);
  }

  private void add(final String name, final double ms) {
    if (ms > 0) {
      millis.merge(name, ms, Double::sum);
    }
  }

  synchronized void reset() {
    millis.clear();
    tasks = 0;
  }

  synchronized int tasks() {
    return tasks;
  }

  /** Milliseconds of all tasks together, by what they were spent with. */
  synchronized Map<String, Double> millis() {
    final Map<String, Double> rounded = new TreeMap<>();
    millis.forEach((name, ms) -> rounded.put(name, Math.round(ms * 10) / 10.0));
    return rounded;
  }
}
