package io.zerohop.spark.conf;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.zerohop.spark.LocalSpark;
import org.apache.spark.SparkConf;
import org.junit.jupiter.api.Nested;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;

/** Who has set the manager, on which Spark, and what is said of it. */
class ManagerChoiceTest {
  private static final String OURS = ZerohopConf.SHUFFLE_MANAGER;
  private static final String SORT = "org.apache.spark.shuffle.sort.SortShuffleManager";
  private static final String RAPIDS = "com.nvidia.spark.rapids.spark413.RapidsShuffleManager";

  private static SparkConf conf(final String plugins) {
    return new SparkConf(false).set("spark.plugins", plugins);
  }

  private static SparkConf both() {
    return conf("com.nvidia.spark.SQLPlugin, io.zerohop.spark.ZerohopPlugin");
  }

  @Test
  void thePluginChoosesFromSpark4On() {
    for (final String spark : new String[] {"4.0.2", "4.1.3", "4.2.0", "5.0.0"}) {
      final SparkConf conf = both();
      assertThat(ManagerChoice.foresee(conf, spark)).as(spark).isEqualTo(OURS);
      assertThat(ManagerChoice.obstacle(conf, OURS, spark)).as(spark).isNull();
    }
  }

  @Test
  void spark35HasItsManagerBefore() {
    final SparkConf conf = both();
    assertThat(ManagerChoice.foresee(conf, "3.5.8")).isEqualTo(SORT);
    assertThat(conf.contains(ManagerChoice.KEY)).isFalse();
    assertThat(ManagerChoice.obstacle(conf, SORT, "3.5.8"))
        .asString()
        .contains("the shuffle manager is " + SORT)
        .contains("Spark 3.5.8 makes the shuffle manager before the plugins")
        .endsWith("; set spark.shuffle.manager=" + OURS + " [ZH-1006]");
  }

  @Test
  void whatTheUserSetStays() {
    for (final String spark : new String[] {"3.5.8", "4.1.3"}) {
      for (final String set : new String[] {RAPIDS, "org.example.Manager"}) {
        final SparkConf conf = both().set(ManagerChoice.KEY, set);
        assertThat(ManagerChoice.foresee(conf, spark)).isEqualTo(set);
        assertThat(ManagerChoice.obstacle(conf, set, spark))
            .asString()
            .contains("is set to " + set);
      }
      assertThat(ManagerChoice.foresee(both().set(ManagerChoice.KEY, "tungsten-sort"), spark))
          .isEqualTo(SORT);
      assertThat(ManagerChoice.foresee(both().set(ManagerChoice.KEY, OURS), spark)).isEqualTo(OURS);
    }
  }

  @Test
  void whoNamesNoPluginIsToldOfOneLine() {
    final SparkConf conf = conf("com.nvidia.spark.SQLPlugin");
    assertThat(ManagerChoice.foresee(conf, "4.1.3")).isEqualTo(SORT);
    assertThat(ManagerChoice.obstacle(conf, SORT, "4.1.3"))
        .asString()
        .contains("; set spark.plugins=com.nvidia.spark.SQLPlugin,io.zerohop.spark.ZerohopPlugin");
    assertThat(ManagerChoice.obstacle(new SparkConf(false), SORT, "4.1.3"))
        .asString()
        .contains("; set spark.plugins=io.zerohop.spark.ZerohopPlugin");
    assertThat(ManagerChoice.obstacle(conf, SORT, "3.5.8"))
        .asString()
        .contains("; set spark.shuffle.manager=" + OURS);
  }

  @Test
  void aManagerThatSparkDidNotTakeIsSaid() {
    final SparkConf conf = both().set(ManagerChoice.KEY, OURS);
    assertThat(ManagerChoice.obstacle(conf, SORT, "4.1.3")).asString().contains("was set too late");
  }

  @Test
  void disabledItIsSortShuffle() {
    final SparkConf conf = both().set("spark.zerohop.enabled", "false");
    ManagerChoice.prepare(conf);
    assertThat(conf.get(ManagerChoice.KEY)).isEqualTo("sort");
    assertThat(ManagerChoice.warnOfOther(conf, "4.1.3")).isNull();
    final SparkConf bad = both().set("spark.zerohop.enabled", "perhaps");
    assertThatThrownBy(() -> ManagerChoice.prepare(bad))
        .hasMessageContaining("spark.zerohop.enabled=perhaps");
  }

  /** As on Spark 3.5, where the manager is there first. */
  @Nested
  class AfterTheManager {
    @RegisterExtension static final LocalSpark SPARK = new LocalSpark();

    @Test
    void nothingIsSetAndAWarningSaysSo() {
      final SparkConf conf = both();
      final int settings = conf.getAll().length;
      ManagerChoice.prepare(conf);
      assertThat(conf.getAll()).hasSize(settings);
      assertThat(ManagerChoice.inPlace()).isEqualTo(SORT);
      assertThat(ManagerChoice.warnOfOther(conf, "3.5.8"))
          .asString()
          .contains("before the plugins");
    }
  }
}
