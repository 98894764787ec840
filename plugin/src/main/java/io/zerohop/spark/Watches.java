package io.zerohop.spark;

import io.zerohop.spark.compat.SparkFeature;
import io.zerohop.spark.compat.SparkProbe;
import io.zerohop.spark.conf.ZerohopConf;
import io.zerohop.spark.watch.DriverWatch;
import io.zerohop.spark.watch.ExecutorWatch;
import io.zerohop.spark.watch.TabFailure;
import org.apache.spark.SparkConf;
import org.apache.spark.SparkContext;
import org.apache.spark.SparkEnv;
import org.jspecify.annotations.Nullable;

/**
 * Finds what shows an application in the tab GPU Shuffle, by class name. Without these classes
 * there is no tab, and shuffles are the same; a failure of theirs costs the tab alone. Thread safe.
 */
final class Watches {
  private Watches() {}

  /** Adds the tab to an application. To be called once for a SparkContext. */
  static void startTab(final SparkContext context, final SparkEnv env) {
    final boolean off = areOff(context.conf());
    try {
      final DriverWatch tab = off ? null : find(DriverWatch.class, "ui.LiveTab");
      if (tab != null) {
        tab.start(context, env);
      }
    } catch (final RuntimeException | LinkageError e) {
      TabFailure.warn("cannot add the tab GPU Shuffle to this application's UI", e);
    }
  }

  /** Returns what reports an executor's shuffles to the tab. */
  static ExecutorWatch ofExecutor(final SparkConf conf) {
    final boolean off = areOff(conf);
    try {
      final ExecutorWatch reports = off ? null : find(ExecutorWatch.class, "ui.ExecutorReports");
      return reports == null ? ExecutorWatch.NONE : reports;
    } catch (final RuntimeException | LinkageError e) {
      TabFailure.warn("cannot report from this executor to the tab GPU Shuffle", e);
      return ExecutorWatch.NONE;
    }
  }

  private static boolean areOff(final SparkConf conf) {
    return ZerohopConf.of(conf).uiInterval().isZero();
  }

  /** Returns null where the jar does not have the class, or Spark not all that a tab needs. */
  private static <T> @Nullable T find(final Class<T> type, final String name) {
    // In this order: without what a tab needs, its classes may not even link.
    return SparkProbe.here().has(SparkFeature.TAB) ? EntryClass.makeIfPresent(type, name) : null;
  }
}
