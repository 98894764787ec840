package io.zerohop.spark;

import java.util.function.Consumer;
import java.util.function.Function;
import org.apache.spark.SparkConf;
import org.apache.spark.scheduler.SparkListener;
import org.apache.spark.status.AppHistoryServerPlugin;
import org.apache.spark.status.ElementTrackingStore;
import org.apache.spark.ui.SparkUI;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import scala.collection.immutable.List;
import scala.collection.immutable.Nil$;
import scala.collection.immutable.Seq;

/**
 * The history server's plugin, which it finds in {@code META-INF/services} if Zerohop's jar is on
 * its class path. It adds the tab GPU Shuffle. An {@link EntryClass}, since the server may run on
 * an older Java than the applications: it has no tab then, and everything else as before.
 */
public final class ZerohopHistoryPlugin implements AppHistoryServerPlugin, HistoryListeners212 {
  private static final Logger LOG = LoggerFactory.getLogger(ZerohopHistoryPlugin.class);

  /** Behind the tabs of Spark's own plugins. */
  private static final int ORDER = 1_000;

  /** Called by Spark. */
  public ZerohopHistoryPlugin() {}

  @Override
  public Seq<SparkListener> createListeners(
      final SparkConf conf, final ElementTrackingStore store) {
    @SuppressWarnings("unchecked")
    final List<SparkListener> none = (List<SparkListener>) (Object) Nil$.MODULE$;
    if (!EntryClass.isNewJava()) {
      LOG.info("zerohop: no tab GPU Shuffle: {}", EntryClass.tooOld());
      return none;
    }
    try {
      @SuppressWarnings("unchecked")
      final Function<ElementTrackingStore, SparkListener> listeners =
          EntryClass.make(Function.class, "ui.HistoryTab", new Class<?>[0]);
      return none.$colon$colon(listeners.apply(store));
    } catch (final RuntimeException | LinkageError e) {
      LOG.info("zerohop: no tab GPU Shuffle with this Spark", e);
      return none;
    }
  }

  @Override
  public void setupUI(final SparkUI ui) {
    if (EntryClass.isNewJava()) {
      try {
        @SuppressWarnings("unchecked")
        final Consumer<SparkUI> tab =
            EntryClass.make(Consumer.class, "ui.HistoryTab", new Class<?>[0]);
        tab.accept(ui);
      } catch (final RuntimeException | LinkageError e) {
        LOG.info("zerohop: no tab GPU Shuffle with this Spark", e);
      }
    }
  }

  @Override
  public int displayOrder() {
    return ORDER;
  }
}
