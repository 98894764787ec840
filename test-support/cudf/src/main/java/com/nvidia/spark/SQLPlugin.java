package com.nvidia.spark;

import java.util.Map;
import org.apache.spark.api.plugin.DriverPlugin;
import org.apache.spark.api.plugin.ExecutorPlugin;
import org.apache.spark.api.plugin.PluginContext;
import org.apache.spark.api.plugin.SparkPlugin;

/**
 * In the place of RAPIDS' plugin, by whose name Spark hands settings over: keeps what its executor
 * part gets.
 */
public final class SQLPlugin implements SparkPlugin {
  /** What the last executor part was started with; null if none was. */
  public static volatile Map<String, String> handedOver;

  @Override
  public DriverPlugin driverPlugin() {
    return null;
  }

  @Override
  public ExecutorPlugin executorPlugin() {
    return new ExecutorPlugin() {
      @Override
      public void init(final PluginContext context, final Map<String, String> extraConf) {
        handedOver = Map.copyOf(extraConf);
      }
    };
  }
}
