package io.zerohop.spark.versions;

import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.time.Duration;
import java.util.Map;
import java.util.function.Supplier;
import org.apache.spark.SparkConf;
import org.apache.spark.SparkContext;
import org.apache.spark.SparkEnv;
import org.apache.spark.api.plugin.DriverPlugin;
import org.apache.spark.api.plugin.ExecutorPlugin;
import org.apache.spark.api.plugin.PluginContext;
import org.apache.spark.api.plugin.SparkPlugin;
import org.apache.spark.sql.SparkSession;

/**
 * The shuffles of {@link ShuffleApp}, and which shuffle manager the driver has: {@code one-key-app:
 * manager=CLASS tab=CODE}, where the tab has the code of a warning about that. Written in Java, so
 * that the same classes run on either Scala version.
 */
public final class OneKeyApp {
  private static final Duration LIMIT = Duration.ofSeconds(40);
  private static final String WARNING = "ZH-1006";

  private OneKeyApp() {}

  /** Chooses a manager where none is set when it starts, as RAPIDS 26.08 does on Spark 4. */
  public static final class ChoosingPlugin implements SparkPlugin {
    @Override
    public DriverPlugin driverPlugin() {
      return new DriverPlugin() {
        @Override
        public Map<String, String> init(final SparkContext context, final PluginContext plugin) {
          plugin
              .conf()
              .setIfMissing(
                  "spark.shuffle.manager", "org.apache.spark.shuffle.sort.SortShuffleManager");
          return Map.of();
        }
      };
    }

    @Override
    public ExecutorPlugin executorPlugin() {
      return null;
    }
  }

  /**
   * Runs them.
   *
   * @param arguments {@code tab} to wait until the tab has the doctor's lines
   */
  public static void main(final String[] arguments) throws Exception {
    final SparkConf conf =
        new SparkConf().set("spark.ui.enabled", "true").set("spark.ui.port", "0");
    final Supplier<String> shuffles;
    try (SparkSession spark = SparkSession.builder().config(conf).getOrCreate()) {
      shuffles = ShuffleApp.run(spark);
      final String url = spark.sparkContext().uiWebUrl().get() + "/zerohop/";
      System.out.println(
          "one-key-app: manager="
              + SparkEnv.get().shuffleManager().getClass().getName()
              + " tab="
              + (arguments.length > 0 ? advised(url) : "unseen"));
    }
    System.out.println(shuffles.get());
  }

  /** The code of the warning if the tab has it, and {@code none} if it has only other lines. */
  private static String advised(final String url) throws Exception {
    final long end = System.nanoTime() + LIMIT.toNanos();
    String page = "";
    while (!page.contains("zerohop-doctor-all") && System.nanoTime() < end) {
      Thread.sleep(200);
      page = get(url);
    }
    if (!page.contains("zerohop-doctor-all")) {
      throw new IllegalStateException("no line of the doctor's is at " + url + ": " + page);
    }
    return page.contains(WARNING) ? WARNING : "none";
  }

  private static String get(final String url) throws Exception {
    return HttpClient.newHttpClient()
        .send(
            HttpRequest.newBuilder(URI.create(url)).timeout(LIMIT).build(),
            HttpResponse.BodyHandlers.ofString())
        .body();
  }
}
