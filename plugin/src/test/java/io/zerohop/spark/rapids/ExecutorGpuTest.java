package io.zerohop.spark.rapids;

import static org.assertj.core.api.Assertions.assertThat;

import com.nvidia.spark.SQLPlugin;
import io.zerohop.spark.rapids.api.RapidsProbe;
import io.zerohop.spark.rapids.setup.Preflight;
import io.zerohop.spark.rapids.setup.RapidsMode;
import java.util.Map;
import org.apache.spark.SparkConf;
import org.apache.spark.SparkContext;
import org.apache.spark.SparkEnv;
import org.apache.spark.api.plugin.DriverPlugin;
import org.apache.spark.api.plugin.ExecutorPlugin;
import org.apache.spark.api.plugin.SparkPlugin;
import org.apache.spark.internal.plugin.PluginContainer;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import scala.Tuple2;

/** What an executor decides by its own GPU, and that RAPIDS' executor part gets to see it. */
class ExecutorGpuTest {
  private static final long GIB = 1L << 30;
  private static final long FIFTH = 24 * GIB / 5 / (1 << 20) * (1 << 20);
  private static final String POOL = "spark.zerohop.device.pool.size";
  private static final String HANDED_OVER =
      "spark.plugins.internal.conf.com.nvidia.spark.SQLPlugin.";

  /** Stands for ours, in an executor with a GPU of 24 GiB. */
  public static final class Ours implements SparkPlugin {
    /** Called by Spark. */
    public Ours(final SparkConf conf) {
      RapidsMode.prepareExecutor(conf, 24 * GIB);
    }

    @Override
    public DriverPlugin driverPlugin() {
      return null;
    }

    @Override
    public ExecutorPlugin executorPlugin() {
      return null;
    }
  }

  @AfterEach
  void forget() {
    SQLPlugin.handedOver = null;
  }

  /** What the driver has sent to executors after its own RAPIDS plugin has started. */
  private static SparkConf decidedOnTheDriver(final String... settings) {
    final SparkConf conf =
        new SparkConf(false)
            .set("spark.plugins", "com.nvidia.spark.SQLPlugin,io.zerohop.spark.ZerohopPlugin")
            .set("spark.shuffle.manager", "io.zerohop.spark.ZerohopShuffleManager");
    for (int i = 0; i < settings.length; i += 2) {
      conf.set(settings[i], settings[i + 1]);
    }
    RapidsMode.prepare(conf, new Preflight("26.08.1", RapidsProbe.complete(), null, null));
    conf.set(HANDED_OVER + RapidsMode.RESERVE, conf.get(RapidsMode.RESERVE));
    return conf.set(HANDED_OVER + "spark.rapids.sql.enabled", "true");
  }

  private static Map<String, String> startPlugins(final SparkConf sent) {
    final SparkConf conf =
        new SparkConf(false)
            .setMaster("local[1]")
            .setAppName("plugins")
            .set("spark.ui.enabled", "false");
    final SparkContext context = new SparkContext(conf);
    try {
      final SparkConf live = SparkEnv.get().conf();
      for (final Tuple2<String, String> setting : sent.getAll()) {
        live.set(setting._1(), setting._2());
      }
      live.set("spark.plugins", SQLPlugin.class.getName() + "," + Ours.class.getName());
      PluginContainer.apply(SparkEnv.get(), Map.of());
      assertThat(live.get(POOL)).isEqualTo(Long.toString(FIFTH));
      return SQLPlugin.handedOver;
    } finally {
      context.stop();
    }
  }

  @Test
  void rapidsLeavesAFifthOfTheExecutorsOwnGpu() {
    final Map<String, String> seen = startPlugins(decidedOnTheDriver());
    assertThat(seen)
        .containsEntry(RapidsMode.RESERVE, Long.toString((640L << 20) + FIFTH))
        .containsEntry("spark.rapids.sql.enabled", "true");
  }

  @Test
  void whatTheUserReservedStaysInExecutors() {
    final Map<String, String> seen = startPlugins(decidedOnTheDriver(RapidsMode.RESERVE, "3g"));
    assertThat(seen).containsEntry(RapidsMode.RESERVE, "3g");
  }

  @Test
  void whatTheUserSetOrTheDriverDidNotDecideStays() {
    final SparkConf set = decidedOnTheDriver(POOL, "8g");
    RapidsMode.prepareExecutor(set);
    assertThat(set.get(POOL)).isEqualTo("8g");
    assertThat(set.get(HANDED_OVER + RapidsMode.RESERVE)).isEqualTo("" + (640L << 20 | 8 * GIB));
    final SparkConf undecided = new SparkConf(false);
    RapidsMode.prepareExecutor(undecided);
    assertThat(undecided.getAll()).isEmpty();
  }
}
