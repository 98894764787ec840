package io.zerohop.spark;

import io.zerohop.spark.conf.ZerohopConf;
import io.zerohop.spark.log.SparkCode;
import io.zerohop.spark.watch.DriverWatch;
import org.apache.spark.SparkContext;
import org.apache.spark.SparkEnv;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Finds what shows an application in the tab GPU Shuffle, by class name. Without these classes
 * there is no tab, and shuffles are the same; a failure of theirs costs the tab alone. Thread safe.
 */
final class Watches {
  private static final Logger LOG = LoggerFactory.getLogger(Watches.class);

  private Watches() {}

  /** Adds the tab to an application. To be called once for a SparkContext. */
  static void startTab(final SparkContext context, final SparkEnv env) {
    if (ZerohopConf.of(context.conf()).uiInterval().isZero()) {
      return;
    }
    try {
      final DriverWatch tab = EntryClass.makeIfPresent(DriverWatch.class, "ui.LiveTab");
      if (tab != null) {
        tab.start(context, env);
      }
    } catch (final RuntimeException | LinkageError e) {
      SparkCode.NO_TAB
          .says("cannot add the tab GPU Shuffle to this application's UI")
          .because(e)
          .remedy("set spark.zerohop.ui.interval=0 to do without it")
          .warn(LOG, e);
    }
  }
}
