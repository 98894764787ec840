package io.zerohop.spark;

import io.zerohop.device.Message;
import io.zerohop.spark.conf.ManagerChoice;
import io.zerohop.spark.log.UnusableException;
import io.zerohop.spark.rapids.setup.RapidsLatch;
import io.zerohop.spark.rapids.setup.RapidsMode;
import java.util.Map;
import java.util.Objects;
import org.apache.spark.SparkConf;
import org.apache.spark.SparkContext;
import org.apache.spark.SparkEnv;
import org.apache.spark.api.plugin.DriverPlugin;
import org.apache.spark.api.plugin.ExecutorPlugin;
import org.apache.spark.api.plugin.PluginContext;
import org.apache.spark.api.plugin.SparkPlugin;
import org.jspecify.annotations.Nullable;

/**
 * Makes Zerohop the shuffle manager, and lets the RAPIDS Accelerator's shuffles stay in GPU memory.
 * Spark holds it by {@link ZerohopPlugin}, which any Java can load.
 *
 * <p>Spark makes all plugins before it starts any of them, and each of them before any task. So
 * what Spark and RAPIDS must find is set by the constructor, and what must come after their start
 * is done when all plugins have started: in the driver when metrics are registered, in an executor
 * at its first task.
 */
public final class ShufflePlugin implements SparkPlugin {
  private static final String DRIVER = "driver";

  /**
   * Called by {@link ZerohopPlugin}, in the driver and in every executor, with the live
   * configuration.
   */
  public ShufflePlugin(final SparkConf conf) {
    if (conf.get("spark.executor.id", DRIVER).equals(DRIVER)) {
      ManagerChoice.prepare(conf);
      RapidsMode.prepare(conf);
    } else {
      RapidsMode.prepareExecutor(conf);
    }
  }

  @Override
  public DriverPlugin driverPlugin() {
    return new DriverPlugin() {
      /** Spark gives it before it asks for metrics. */
      private @Nullable SparkContext context;

      @Override
      public Map<String, String> init(final SparkContext sc, final PluginContext plugin) {
        context = sc;
        return Map.of();
      }

      @Override
      public void registerMetrics(final String appId, final PluginContext plugin) {
        final SparkContext running = Objects.requireNonNull(context, "init comes first");
        final Message other = ManagerChoice.warnOfOther(running.conf(), running.version());
        if (other != null) {
          leaveToOther(running, other);
        } else if (RapidsMode.isActive(running.conf())) {
          RapidsLatch.close(SparkEnv.get());
        }
      }

      /** The tab says why as well; where Zerohop's manager is in place, that one adds the tab. */
      private void leaveToOther(final SparkContext running, final Message why) {
        if (RapidsMode.isActive(running.conf())) {
          // RAPIDS has started in a mode whose batches no other manager takes.
          throw new UnusableException(
              Message.of("Zerohop cannot carry RAPIDS' shuffles").because(why));
        }
        Watches.startTab(running, SparkEnv.get());
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
