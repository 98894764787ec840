package io.zerohop.spark.ui;

import io.zerohop.spark.log.SparkCode;
import java.util.function.Consumer;
import org.apache.spark.ui.SparkUI;
import org.apache.spark.util.kvstore.KVStore;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Adds the tab to an application's UI in the history server, from what {@link HistoryListener}
 * stored. An application without a report has none. A failure costs the tab alone.
 */
public final class HistoryTab implements Consumer<SparkUI> {
  private static final Logger LOG = LoggerFactory.getLogger(HistoryTab.class);

  /** Called by the plugin of the history server, by this class's name. */
  public HistoryTab() {}

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
