package io.zerohop.spark.ui;

import org.apache.spark.scheduler.SparkListener;
import org.apache.spark.scheduler.SparkListenerEvent;
import org.apache.spark.scheduler.SparkListenerExecutorRemoved;

/** Brings executors' reports from Spark's listener bus, or from an event log, into a model. */
final class ModelListener extends SparkListener {
  private final ShuffleModel model;

  ModelListener(final ShuffleModel model) {
    this.model = model;
  }

  @Override
  public void onOtherEvent(final SparkListenerEvent event) {
    if (event instanceof ShuffleReportEvent known && known.report() != null) {
      model.add(known.report());
    }
  }

  @Override
  public void onExecutorRemoved(final SparkListenerExecutorRemoved event) {
    model.removed(event.executorId(), event.time());
  }
}
