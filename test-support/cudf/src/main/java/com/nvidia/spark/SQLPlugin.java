package com.nvidia.spark;

import java.util.Map;
import org.apache.spark.SparkContext;
import org.apache.spark.api.plugin.DriverPlugin;
import org.apache.spark.api.plugin.ExecutorPlugin;
import org.apache.spark.api.plugin.PluginContext;
import org.apache.spark.api.plugin.SparkPlugin;

/**
 * In the place of RAPIDS' plugin, by whose name Spark hands settings over: keeps what its executor
 * part gets, and chooses a shuffle manager where none is set, as RAPIDS 26.08 does on Spark 4.
 */
public final class SQLPlugin implements SparkPlugin {
  /** What the last executor part was started with; null if none was. */
  public static volatile Map<String, String> handedOver;

  /** The manager that the driver part chooses when it starts; null if it chooses none. */
  public static volatile String choice;

  @Override
  public DriverPlugin driverPlugin() {
    return new DriverPlugin() {
      @Override
      public Map<String, String> init(final SparkContext context, final PluginContext plugin) {
        if (choice != null) {
          plugin.conf().setIfMissing("spark.shuffle.manager", choice);
        }
        return Map.of();
      }
    };
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
