package io.zerohop.spark.ui;

import java.util.function.Function;
import org.apache.spark.executor.TaskMetrics;
import org.apache.spark.scheduler.SparkListener;
import org.apache.spark.scheduler.SparkListenerEvent;
import org.apache.spark.scheduler.SparkListenerExecutorAdded;
import org.apache.spark.scheduler.SparkListenerExecutorRemoved;
import org.apache.spark.scheduler.SparkListenerTaskEnd;
import org.apache.spark.status.ElementTrackingStore;
import scala.runtime.BoxedUnit;

/**
 * Creates the listener that reads an application's reports from its log in the history server, and
 * stores the result for that application when the log has been read.
 */
public final class HistoryListener implements Function<ElementTrackingStore, SparkListener> {

  /** Called by the plugin of the history server, by this class's name. */
  public HistoryListener() {}

  @Override
  public SparkListener apply(final ElementTrackingStore store) {
    final ShuffleModel model = new ShuffleModel();
    store.onFlush(
        () -> {
          final UiSnapshot known = model.snapshot();
          if (!known.isVoid()) {
            store.write(StoredSnapshot.of(known));
          }
          return BoxedUnit.UNIT;
        });
    return new ModelListener(model);
  }

  /** Passes executors' reports from Spark's listener bus, or from an event log, to a model. */
  static final class ModelListener extends SparkListener {
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
    public void onExecutorAdded(final SparkListenerExecutorAdded event) {
      model.isOn(event.executorId(), event.executorInfo().executorHost());
    }

    @Override
    public void onTaskEnd(final SparkListenerTaskEnd event) {
      final TaskMetrics metrics = event.taskMetrics();
      if (metrics != null && metrics.shuffleReadMetrics().totalBlocksFetched() > 0) {
        model.ran(metrics.executorRunTime(), metrics.shuffleReadMetrics().fetchWaitTime());
      }
    }

    @Override
    public void onExecutorRemoved(final SparkListenerExecutorRemoved event) {
      model.removed(event.executorId(), event.time());
    }
  }
}
