package io.zerohop.spark.keeper;

import io.zerohop.spark.conf.ReliableShuffleIo;
import org.apache.spark.MapOutputTrackerMaster;
import org.apache.spark.SparkContext;
import org.apache.spark.SparkEnv;
import org.apache.spark.scheduler.SparkListener;
import org.apache.spark.scheduler.SparkListenerExecutorRemoved;

/**
 * Removes the outputs of lost executors that no keeper has, in the driver: Spark leaves that to its
 * store of shuffles, see {@link ReliableShuffleIo}. Outputs in a keeper have another executor id. A
 * stage that runs submits its missing partitions at its end.
 */
public final class LostOutputs extends SparkListener {
  private final MapOutputTrackerMaster tracker;

  private LostOutputs(final MapOutputTrackerMaster tracker) {
    this.tracker = tracker;
  }

  /** Follows an application from now on. */
  public static void follow(final SparkContext context, final SparkEnv env) {
    context.addSparkListener(new LostOutputs((MapOutputTrackerMaster) env.mapOutputTracker()));
  }

  @Override
  public void onExecutorRemoved(final SparkListenerExecutorRemoved event) {
    tracker.removeOutputsOnExecutor(event.executorId());
  }
}
