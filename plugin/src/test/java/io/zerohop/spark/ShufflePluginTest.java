package io.zerohop.spark;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.nvidia.spark.SQLPlugin;
import io.zerohop.spark.conf.ManagerChoice;
import io.zerohop.spark.doctor.RunningDoctor;
import io.zerohop.spark.report.Advice;
import java.util.List;
import java.util.Map;
import org.apache.spark.SparkConf;
import org.apache.spark.SparkContext;
import org.apache.spark.SparkEnv;
import org.apache.spark.api.java.JavaSparkContext;
import org.apache.spark.api.plugin.DriverPlugin;
import org.apache.spark.api.plugin.ExecutorPlugin;
import org.apache.spark.api.plugin.PluginContext;
import org.apache.spark.api.plugin.SparkPlugin;
import org.apache.spark.shuffle.sort.SortShuffleManager;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import scala.Tuple2;

/** Which shuffle manager Spark makes of what a user names, beside a plugin that chooses as well. */
class ShufflePluginTest {
  private static final String OURS = ZerohopPlugin.class.getName();
  private static final String RAPIDS = SQLPlugin.class.getName();
  private static final String MANAGER = ZerohopShuffleManager.class.getName();
  private static final String SORT = SortShuffleManager.class.getName();
  private static final List<String> PLUGINS =
      List.of(OURS, OURS + "," + RAPIDS, RAPIDS + "," + OURS);

  @AfterEach
  void choosesNothing() {
    SQLPlugin.choice = null;
  }

  /** Changes the manager when it starts, whoever has set it. */
  public static final class Stubborn implements SparkPlugin {
    @Override
    public DriverPlugin driverPlugin() {
      return new DriverPlugin() {
        @Override
        public Map<String, String> init(final SparkContext context, final PluginContext plugin) {
          plugin.conf().set(ManagerChoice.KEY, SORT);
          return Map.of();
        }
      };
    }

    @Override
    public ExecutorPlugin executorPlugin() {
      return null;
    }
  }

  /** What came of an application: its manager, and the doctor's line on that. */
  private record Outcome(String manager, Advice advice) {}

  private static Outcome run(final String plugins, final String... settings) {
    final SparkConf conf =
        new SparkConf(false)
            .setMaster("local[2]")
            .setAppName("one key")
            .set("spark.ui.enabled", "false")
            .set("spark.zerohop.pool.size", "64m")
            .set("spark.zerohop.segment.size", "8m")
            .set("spark.plugins", plugins);
    for (int i = 0; i < settings.length; i += 2) {
      conf.set(settings[i], settings[i + 1]);
    }
    try (JavaSparkContext context = new JavaSparkContext(conf)) {
      final long keys =
          context
              .parallelize(List.of(1, 2, 3, 4, 5, 6), 2)
              .mapToPair(n -> new Tuple2<>(n % 3, n))
              .reduceByKey(Integer::sum)
              .count();
      assertThat(keys).isEqualTo(3);
      final Advice advice =
          RunningDoctor.ofDriver(context.getConf()).stream()
              .filter(it -> it.check().equals("manager"))
              .findFirst()
              .orElseThrow();
      return new Outcome(SparkEnv.get().shuffleManager().getClass().getName(), advice);
    }
  }

  @Test
  void thePluginAloneIsEnoughInAnyOrderAndWhateverRapidsChooses() {
    for (final String choice : new String[] {null, SORT}) {
      SQLPlugin.choice = choice;
      for (final String plugins : PLUGINS) {
        final Outcome outcome = run(plugins);
        assertThat(outcome.manager()).as("%s beside %s", plugins, choice).isEqualTo(MANAGER);
        assertThat(outcome.advice().verdict()).as("%s", outcome).isEqualTo("ok");
      }
    }
  }

  @Test
  void bothKeysAreAsBefore() {
    for (final String plugins : PLUGINS) {
      final Outcome outcome = run(plugins, ManagerChoice.KEY, MANAGER);
      assertThat(outcome.manager()).as("%s", plugins).isEqualTo(MANAGER);
      assertThat(outcome.advice().verdict()).as("%s", outcome).isEqualTo("ok");
    }
  }

  @Test
  void whatTheUserSetStaysAndIsSaid() {
    SQLPlugin.choice = MANAGER;
    for (final String plugins : PLUGINS) {
      final Outcome outcome = run(plugins, ManagerChoice.KEY, "sort");
      assertThat(outcome.manager()).as("%s", plugins).isEqualTo(SORT);
      assertThat(outcome.advice().verdict()).isEqualTo("warn");
      assertThat(outcome.advice().what())
          .contains(SORT)
          .contains("spark.shuffle.manager is set to sort");
      assertThat(outcome.advice().code()).isEqualTo("ZH-1006");
      assertThat(outcome.advice().remedy()).isEqualTo("set spark.shuffle.manager=" + MANAGER);
    }
  }

  @Test
  void disabledItLeavesAllToSortShuffle() {
    for (final String choice : new String[] {null, MANAGER}) {
      SQLPlugin.choice = choice;
      for (final String plugins : PLUGINS) {
        final Outcome outcome = run(plugins, "spark.zerohop.enabled", "false");
        assertThat(outcome.manager()).as("%s beside %s", plugins, choice).isEqualTo(SORT);
        assertThat(outcome.advice().what()).contains("spark.zerohop.enabled is false");
      }
    }
  }

  @Test
  void aPluginThatChangesTheManagerIsNoticed() {
    final Outcome outcome = run(OURS + "," + Stubborn.class.getName());
    assertThat(outcome.manager()).isEqualTo(SORT);
    assertThat(outcome.advice().what())
        .contains("something changed spark.shuffle.manager after Zerohop's plugin had set it");
  }

  @Test
  void gpuBatchesAreNotLeftToAnotherManager() {
    assertThatThrownBy(
            () ->
                run(OURS + "," + Stubborn.class.getName(), "spark.zerohop.internal.rapids", "true"))
        .isInstanceOf(IllegalStateException.class)
        .hasMessageContaining("cannot carry RAPIDS' shuffles")
        .hasMessageContaining("set spark.shuffle.manager=" + MANAGER);
  }
}
