package io.zerohop.spark;

import org.apache.spark.SparkConf;
import org.apache.spark.api.plugin.DriverPlugin;
import org.apache.spark.api.plugin.ExecutorPlugin;
import org.apache.spark.api.plugin.SparkPlugin;

/**
 * What users name beside the shuffle manager to let the RAPIDS Accelerator's shuffles stay in GPU
 * memory: {@code spark.plugins=com.nvidia.spark.SQLPlugin,io.zerohop.spark.ZerohopPlugin}, in
 * either order. An {@link EntryClass}; everything is done by {@code RapidsShufflePlugin}.
 */
public final class ZerohopPlugin implements SparkPlugin {
  private final SparkPlugin plugin;

  /** Called by Spark, in the driver and in every executor, with the live configuration. */
  public ZerohopPlugin(final SparkConf conf) {
    this.plugin =
        EntryClass.make(
            SparkPlugin.class,
            "RapidsShufflePlugin",
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
