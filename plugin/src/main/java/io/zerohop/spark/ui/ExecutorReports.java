package io.zerohop.spark.ui;

import io.zerohop.device.Message;
import io.zerohop.device.posix.Clock;
import io.zerohop.device.posix.Housekeeping;
import io.zerohop.shuffle.block.Link;
import io.zerohop.shuffle.block.Location;
import io.zerohop.shuffle.conf.Config;
import io.zerohop.shuffle.keeper.KeeperStats;
import io.zerohop.spark.conf.ZerohopConf;
import io.zerohop.spark.doctor.RunningDoctor;
import io.zerohop.spark.report.Advice;
import io.zerohop.spark.report.Figure.Figures;
import io.zerohop.spark.report.ReportCounters;
import io.zerohop.spark.report.ReportCounters.ReaderCounts;
import io.zerohop.spark.report.ReportSender;
import io.zerohop.spark.report.ReportSender.DriverReports;
import io.zerohop.spark.report.ShuffleReport.Keeper;
import io.zerohop.spark.report.ShuffleReport.Memory;
import io.zerohop.spark.watch.ExecutorWatch;
import io.zerohop.spark.watch.TabFailure;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.Supplier;
import java.util.function.ToLongFunction;
import org.apache.spark.SparkConf;
import org.apache.spark.SparkEnv;
import org.apache.spark.TaskContext;
import org.apache.spark.util.TaskCompletionListener;
import org.jspecify.annotations.Nullable;

/**
 * Counts what an executor does with shuffles, and reports it to the {@link LiveTab} on the driver.
 * Thread safe.
 */
public final class ExecutorReports implements ExecutorWatch {
  private final ReportCounters counters = new ReportCounters();

  /** Attempts whose end is reported. */
  private final Set<Long> reported = ConcurrentHashMap.newKeySet();

  /** Absent before the executor runs tasks. */
  private volatile @Nullable ReportSender sender;

  /** Called by this class's name. */
  public ExecutorReports() {}

  @Override
  public void met(final String executorId, final String how, final Link link, final long expected) {
    counters.met(executorId, how, link, expected);
  }

  @Override
  public void advise(final String check, final Message warning) {
    counters.advise(Advice.of(check, "warn", warning));
  }

  @Override
  public void begin(
      final SparkEnv env,
      final SparkConf conf,
      final ToLongFunction<String> metrics,
      final @Nullable Supplier<KeeperStats> keeper,
      final Housekeeping housekeeping) {
    final Config keys = ZerohopConf.of(conf);
    try {
      sender =
          new ReportSender(
              env.executorId(),
              Location.currentBootId(keys.nodeId()),
              counters,
              () ->
                  new Memory(
                      Figures.of(figure -> metrics.applyAsLong(figure.metric().key())),
                      keeper == null ? null : Keeper.of(keeper.get())),
              () -> RunningDoctor.ofExecutor(conf),
              new DriverReports(env, conf),
              keys.uiInterval(),
              housekeeping,
              Clock.system());
    } catch (final RuntimeException | LinkageError e) {
      TabFailure.warn("cannot report from this executor to the tab GPU Shuffle", e);
    }
  }

  @Override
  public void writes(final int shuffleId, final TaskContext task) {
    reportAtEndOf(task);
    counters.writes(shuffleId, task.stageId());
  }

  @Override
  public Reader reads(final int shuffleId, final TaskContext task) {
    reportAtEndOf(task);
    counters.reads(shuffleId, task.stageId());
    return new ReaderCounts(counters, shuffleId);
  }

  /** Reports a task's counts at its end, once for any number of readers. */
  private void reportAtEndOf(final TaskContext task) {
    final ReportSender to = sender;
    if (to != null && reported.add(task.taskAttemptId())) {
      to.taskBegins();
      task.addTaskCompletionListener((TaskCompletionListener) ended -> taskEnded(ended, to));
    }
  }

  private void taskEnded(final TaskContext task, final ReportSender to) {
    reported.remove(task.taskAttemptId());
    to.taskEnded();
  }

  @Override
  public void close() {
    final ReportSender to = sender;
    if (to != null) {
      to.close();
    }
  }
}
