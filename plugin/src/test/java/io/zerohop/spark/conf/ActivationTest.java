package io.zerohop.spark.conf;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import org.apache.spark.SparkConf;
import org.junit.jupiter.api.Test;

class ActivationTest {
  private static final String FALLBACK = "spark.storage.decommission.fallbackStorage.path";
  private static final String DIAGNOSIS = "spark.shuffle.checksum.enabled";

  @Test
  void isOnByDefault() {
    assertThat(Activation.check(new SparkConf(false), true)).isTrue();
  }

  @Test
  void canBeSwitchedOff() {
    final SparkConf conf = new SparkConf(false).set("spark.zerohop.enabled", "false");
    assertThat(Activation.check(conf, true)).isFalse();
  }

  @Test
  void stepsAsideForTheExternalShuffleService() {
    final SparkConf conf = new SparkConf(false).set("spark.shuffle.service.enabled", "true");
    assertThat(Activation.check(conf, true)).isFalse();
  }

  @Test
  void stepsAsideForStorageOfTheUsersChoice() {
    final SparkConf conf =
        new SparkConf(false).set("spark.shuffle.sort.io.plugin.class", "org.example.Remote");
    assertThat(Activation.check(conf, true)).isFalse();
    assertThat(Activation.obstacle(conf)).asString().contains("org.example.Remote");
    conf.set(
        "spark.shuffle.sort.io.plugin.class",
        "org.apache.spark.shuffle.sort.io.LocalDiskShuffleDataIO");
    assertThat(Activation.check(conf, true)).isTrue();
  }

  /** Attempts of a map task then share one number, and a reader could get another one's blocks. */
  @Test
  void stepsAsideForTheOldFetchProtocol() {
    final SparkConf conf = new SparkConf(false).set("spark.shuffle.useOldFetchProtocol", "true");
    assertThat(Activation.check(conf, true)).isFalse();
    assertThat(Activation.obstacle(conf)).asString().contains("ZH-1017", "useOldFetchProtocol");
  }

  /** What is in memory has no file, and a healthy neighbour would look as if it had lost it. */
  @Test
  void nobodyLooksForFilesOfNeighbours() {
    final SparkConf conf = new SparkConf(false).set("spark.shuffle.readHostLocalDisk", "true");
    assertThat(Activation.check(conf, true)).isTrue();
    assertThat(conf.get("spark.shuffle.readHostLocalDisk")).isEqualTo("false");
  }

  /** Spark copies nothing into it from a resolver that is not its own, and says that it has. */
  @Test
  void fallbackStorageIsTakenOut() {
    final SparkConf conf = new SparkConf(false).set(FALLBACK, "file:///fallback/");
    assertThat(Activation.check(conf, true)).isTrue();
    assertThat(conf.contains(FALLBACK)).isFalse();
  }

  @Test
  void fallbackStorageStaysWhereSparkShuffles() {
    final SparkConf conf =
        new SparkConf(false)
            .set(FALLBACK, "file:///fallback/")
            .set("spark.shuffle.service.enabled", "true");
    assertThat(Activation.check(conf, true)).isFalse();
    assertThat(conf.contains(FALLBACK)).isTrue();
  }

  /** Spark asks a resolver of its own class, and ours cannot be one. */
  @Test
  void sparksDiagnosisOfDamageIsNotAskedFor() {
    final SparkConf conf = new SparkConf(false);
    assertThat(Activation.check(conf, true)).isTrue();
    assertThat(conf.get(DIAGNOSIS)).isEqualTo("false");
    assertThat(Activation.check(conf.set(DIAGNOSIS, "true"), true)).isTrue();
    assertThat(conf.get(DIAGNOSIS)).as("the user's own choice").isEqualTo("true");
  }

  @Test
  void aBadValueStopsTheApplication() {
    final SparkConf conf = new SparkConf(false).set("spark.zerohop.enabled", "perhaps");
    assertThatThrownBy(() -> Activation.check(conf, true))
        .hasMessageContaining("spark.zerohop.enabled=perhaps");
  }
}
