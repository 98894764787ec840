package io.zerohop.gpu;

import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.spark.Success$;
import org.apache.spark.executor.TaskMetrics;
import org.apache.spark.scheduler.SparkListener;
import org.apache.spark.scheduler.SparkListenerExecutorRemoved;
import org.apache.spark.scheduler.SparkListenerTaskEnd;

/**
 * Which tasks that read a shuffle and write another had succeeded when an executor was lost, and
 * which of those ran again although their own executor was there. Spark's listener thread fills it;
 * the caller lets that thread run dry before it reads.
 */
public final class TaskRepeats extends SparkListener {
  private record Task(int stage, int partition) {}

  private final Map<Task, List<String>> before = new ConcurrentHashMap<>();
  private final Map<Task, List<String>> after = new ConcurrentHashMap<>();
  private final Set<String> lost = new HashSet<>();

  @Override
  public synchronized void onTaskEnd(final SparkListenerTaskEnd end) {
    final TaskMetrics metrics = end.taskMetrics();
    if (end.reason() == Success$.MODULE$
        && metrics != null
        && metrics.shuffleReadMetrics().recordsRead() > 0
        && metrics.shuffleWriteMetrics().recordsWritten() > 0) {
      (lost.isEmpty() ? before : after)
          .computeIfAbsent(
              new Task(end.stageId(), end.taskInfo().partitionId()), task -> new ArrayList<>())
          .add(end.taskInfo().executorId());
    }
  }

  @Override
  public synchronized void onExecutorRemoved(final SparkListenerExecutorRemoved removed) {
    lost.add(removed.executorId());
  }

  /** Begins anew. */
  public synchronized void reset() {
    before.clear();
    after.clear();
    lost.clear();
  }

  private List<Task> survivors() {
    return before.entrySet().stream()
        .filter(done -> done.getValue().stream().noneMatch(lost::contains))
        .map(Map.Entry::getKey)
        .toList();
  }

  /** Tasks that had succeeded on executors that stayed. */
  public synchronized int done() {
    return survivors().size();
  }

  /** How many of these succeeded once more. */
  public synchronized int repeated() {
    return (int) survivors().stream().filter(after::containsKey).count();
  }
}
