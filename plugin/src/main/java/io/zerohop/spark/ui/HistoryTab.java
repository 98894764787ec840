package io.zerohop.spark.ui;

import io.zerohop.spark.log.SparkCode;
import java.util.function.Consumer;
import java.util.function.Function;
import org.apache.spark.scheduler.SparkListener;
import org.apache.spark.status.ElementTrackingStore;
import org.apache.spark.ui.SparkUI;
import org.apache.spark.util.kvstore.KVStore;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import scala.runtime.BoxedUnit;

/**
 * The tab in the history server. It reads an application's reports from its log, stores the result
 * when the log has been read, and adds the tab to the application's UI from what is stored. An
 * application without a report has none. A failure costs the tab alone.
 */
public final class HistoryTab
    implements Function<ElementTrackingStore, SparkListener>, Consumer<SparkUI> {
  private static final Logger LOG = LoggerFactory.getLogger(HistoryTab.class);

  /** Called by the plugin of the history server, by this class's name. */
  public HistoryTab() {}

  /** Returns the listener that reads a log. */
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
    return model;
  }

  @Override
  public void accept(final SparkUI ui) {
    try {
      final KVStore store = ui.store().store();
      if (StoredSnapshot.isIn(store)) {
        ShuffleTab.attach(ui, () -> StoredSnapshot.read(store));
      }
    } catch (final Exception | LinkageError e) {
      SparkCode.NO_HISTORY_TAB
          .says("cannot show the tab " + ShuffleTab.NAME + " of an application; all else is shown")
          .because(e)
          .warn(LOG, e);
    }
  }
}
