package io.zerohop.spark.ui;

import org.apache.spark.SparkConf;
import org.apache.spark.scheduler.SparkListener;
import org.apache.spark.status.AppHistoryServerPlugin;
import org.apache.spark.status.ElementTrackingStore;
import org.apache.spark.ui.SparkUI;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import scala.collection.immutable.Nil$;
import scala.collection.immutable.Seq;
import scala.runtime.BoxedUnit;

/**
 * The tab in the history server, which finds this class in {@code META-INF/services} where our jar
 * is on its class path. An application without a report has no tab. A failure costs the tab alone.
 */
public final class HistoryPlugin implements AppHistoryServerPlugin, HistoryListeners212 {
  private static final Logger LOG = LoggerFactory.getLogger(HistoryPlugin.class);

  /** Behind the tabs of Spark's own plugins. */
  private static final int ORDER = 1_000;

  /** Called by Spark. */
  public HistoryPlugin() {}

  @Override
  @SuppressWarnings("unchecked")
  public Seq<SparkListener> createListeners(
      final SparkConf conf, final ElementTrackingStore store) {
    final ShuffleModel model = new ShuffleModel();
    store.onFlush(
        () -> {
          final UiSnapshot known = model.snapshot();
          if (!known.memory().isEmpty()) {
            store.write(StoredSnapshot.of(known));
          }
          return BoxedUnit.UNIT;
        });
    final scala.collection.immutable.List<SparkListener> none =
        (scala.collection.immutable.List<SparkListener>) (Object) Nil$.MODULE$;
    return none.$colon$colon(new ModelListener(model));
  }

  @Override
  public void setupUI(final SparkUI ui) {
    try {
      final UiSnapshot stored = StoredSnapshot.read(ui.store().store());
      if (stored != null) {
        ShuffleTab.attach(ui, () -> stored);
      }
    } catch (final Exception | LinkageError e) {
      LOG.warn("Zerohop: an application has no tab {}; all else is shown", ShuffleTab.NAME, e);
    }
  }

  @Override
  public int displayOrder() {
    return ORDER;
  }
}
