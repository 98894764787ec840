package io.zerohop.workload;

import java.util.HashMap;
import java.util.HashSet;
import java.util.Map;
import java.util.Set;
import org.apache.spark.Success$;
import org.apache.spark.executor.TaskMetrics;
import org.apache.spark.scheduler.AccumulableInfo;
import org.apache.spark.scheduler.SparkListener;
import org.apache.spark.scheduler.SparkListenerStageCompleted;
import org.apache.spark.scheduler.SparkListenerStageSubmitted;
import org.apache.spark.scheduler.SparkListenerTaskEnd;
import org.apache.spark.scheduler.StageInfo;

/**
 * Adds up what shuffles cost and which way their bytes went, between one {@link #reset} and the
 * next. Bytes per path are the named accumulators {@code zerohop.<path>.bytes}; under sort shuffle
 * there are none and they stay 0.
 *
 * <p>Spark's listener thread fills it; the caller lets that thread run dry before it reads.
 */
public final class ShuffleMeter extends SparkListener {
  private static final String PREFIX = "zerohop.";
  private static final String SUFFIX = ".bytes";

  private final Map<String, Long> bytesByPath = new HashMap<>();
  private final Map<Integer, Integer> shuffleByStage = new HashMap<>();
  private final Set<MapTask> succeeded = new HashSet<>();
  private int mapTasksAgain;
  private long stageMs;
  private long writeNanos;
  private long fetchWaitMs;
  private long shuffleBytes;

  @Override
  public synchronized void onStageSubmitted(final SparkListenerStageSubmitted submitted) {
    final StageInfo stage = submitted.stageInfo();
    if (stage.shuffleDepId().isDefined()) {
      shuffleByStage.put(stage.stageId(), (Integer) stage.shuffleDepId().get());
    }
  }

  @Override
  public synchronized void onTaskEnd(final SparkListenerTaskEnd end) {
    final Integer shuffle = shuffleByStage.get(end.stageId());
    if (shuffle != null
        && end.reason() == Success$.MODULE$
        && !succeeded.add(new MapTask(shuffle, end.taskInfo().partitionId()))) {
      mapTasksAgain++;
    }
    // An update is what this task added. A stage shows an accumulator's running total instead,
    // which for one that lives as long as the application says nothing about the stage.
    for (final AccumulableInfo info :
        ScalaLists.get(AccumulableInfo.class, end.taskInfo(), "accumulables")) {
      if (info.name().isDefined()
          && isBytesOfPath(info.name().get())
          && info.update().isDefined()
          && info.update().get() instanceof Number bytes) {
        bytesByPath.merge(path(info.name().get()), bytes.longValue(), Long::sum);
      }
    }
  }

  @Override
  public synchronized void onStageCompleted(final SparkListenerStageCompleted completed) {
    final StageInfo stage = completed.stageInfo();
    final TaskMetrics metrics = stage.taskMetrics();
    final long written = metrics.shuffleWriteMetrics().bytesWritten();
    final long read = metrics.shuffleReadMetrics().totalBytesRead();
    if (written + read == 0 || stage.submissionTime().isEmpty()) {
      return;
    }
    stageMs += (Long) stage.completionTime().get() - (Long) stage.submissionTime().get();
    writeNanos += metrics.shuffleWriteMetrics().writeTime();
    fetchWaitMs += metrics.shuffleReadMetrics().fetchWaitTime();
    shuffleBytes += written;
  }

  /** Begins anew. */
  public synchronized void reset() {
    bytesByPath.clear();
    shuffleByStage.clear();
    succeeded.clear();
    mapTasksAgain = 0;
    stageMs = 0;
    writeNanos = 0;
    fetchWaitMs = 0;
    shuffleBytes = 0;
  }

  /** What has been added up. */
  public synchronized Outcome outcome(
      final String workload, final long rows, final double seconds) {
    return new Outcome(
        workload,
        null,
        rows,
        seconds,
        stageMs,
        writeNanos,
        fetchWaitMs,
        shuffleBytes,
        bytes("local"),
        bytes("peer"),
        bytes("ucx"),
        bytes("sent"),
        bytes("staged"),
        mapTasksAgain,
        RpcProbe.summary());
  }

  private long bytes(final String path) {
    return bytesByPath.getOrDefault(path, 0L);
  }

  private static boolean isBytesOfPath(final String name) {
    return name.startsWith(PREFIX) && name.endsWith(SUFFIX);
  }

  private static String path(final String name) {
    return name.substring(PREFIX.length(), name.length() - SUFFIX.length());
  }

  /** A map task of a shuffle, whichever stage and attempt run it. */
  private record MapTask(int shuffle, int partition) {}
}
