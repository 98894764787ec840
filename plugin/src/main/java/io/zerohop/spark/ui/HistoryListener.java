package io.zerohop.spark.ui;

import java.util.function.Function;
import org.apache.spark.scheduler.SparkListener;
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
}
