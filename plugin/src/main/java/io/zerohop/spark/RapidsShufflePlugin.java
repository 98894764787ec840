package io.zerohop.spark;

import io.zerohop.spark.rapids.setup.RapidsLatch;
import io.zerohop.spark.rapids.setup.RapidsMode;
import java.util.Map;
import org.apache.spark.SparkConf;
import org.apache.spark.SparkContext;
import org.apache.spark.SparkEnv;
import org.apache.spark.api.plugin.DriverPlugin;
import org.apache.spark.api.plugin.ExecutorPlugin;
import org.apache.spark.api.plugin.PluginContext;
import org.apache.spark.api.plugin.SparkPlugin;

/**
 * Lets the RAPIDS Accelerator's shuffles stay in GPU memory. Spark holds it by {@link
 * ZerohopPlugin}, which any Java can load. Does nothing where RAPIDS or our manager is not used.
 *
 * <p>Spark makes all plugins before it starts any of them, and each of them before any task. So
 * what RAPIDS must find is set by the constructor, and what must come after its start is done when
 * all plugins have started: in the driver when metrics are registered, in an executor at its first
 * task.
 */
public final class RapidsShufflePlugin implements SparkPlugin {
  private static final String DRIVER = "driver";

  /**
   * Called by {@link ZerohopPlugin}, in the driver and in every executor, with the live
   * configuration.
   */
  public RapidsShufflePlugin(final SparkConf conf) {
    if (conf.get("spark.executor.id", DRIVER).equals(DRIVER)) {
      RapidsMode.prepare(conf);
    } else {
      RapidsMode.prepareExecutor(conf);
    }
  }

  @Override
  public DriverPlugin driverPlugin() {
    return new DriverPlugin() {
      private SparkContext context;

      @Override
      public Map<String, String> init(final SparkContext sc, final PluginContext plugin) {
        context = sc;
        return Map.of();
      }

      @Override
      public void registerMetrics(final String appId, final PluginContext plugin) {
        if (RapidsMode.isActive(context.conf())) {
          RapidsLatch.close(SparkEnv.get());
        }
      }
    };
  }

  @Override
  public ExecutorPlugin executorPlugin() {
    return new ExecutorPlugin() {
      private volatile boolean closed;

      @Override
      public void onTaskStart() {
        if (!closed) {
          closeOnce();
        }
      }

      private synchronized void closeOnce() {
        closed =
            closed
                || !RapidsMode.isActive(SparkEnv.get().conf())
                || RapidsLatch.closeInExecutor(SparkEnv.get());
      }
    };
  }
}
