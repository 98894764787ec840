package io.zerohop.spark;

import org.apache.spark.SparkConf;
import org.apache.spark.api.plugin.DriverPlugin;
import org.apache.spark.api.plugin.ExecutorPlugin;
import org.apache.spark.api.plugin.SparkPlugin;

/**
 * The plugin that users name. On Spark 4.0 and later {@code
 * spark.plugins=io.zerohop.spark.ZerohopPlugin}, or {@code
 * com.nvidia.spark.SQLPlugin,io.zerohop.spark.ZerohopPlugin} in either order, is enough. Spark 3.5
 * also needs {@link ZerohopShuffleManager}. An {@link EntryClass}; everything is done by {@code
 * ShufflePlugin}.
 */
public final class ZerohopPlugin implements SparkPlugin {
  private final SparkPlugin plugin;

  /** Called by Spark, in the driver and in every executor, with the live configuration. */
  public ZerohopPlugin(final SparkConf conf) {
    this.plugin =
        EntryClass.make(
            SparkPlugin.class,
            "ShufflePlugin",
            new Class<?>[] {SparkConf.class},
            EntryClass.onNewJava("spark.plugins", conf));
  }

  @Override
  public DriverPlugin driverPlugin() {
    return plugin.driverPlugin();
  }

  @Override
  public ExecutorPlugin executorPlugin() {
    return plugin.executorPlugin();
  }
}
