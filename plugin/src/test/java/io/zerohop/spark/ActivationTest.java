package io.zerohop.spark;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import org.apache.spark.SparkConf;
import org.junit.jupiter.api.Test;

class ActivationTest {

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
    assertThat(Activation.obstacle(conf)).contains("org.example.Remote");
    conf.set(
        "spark.shuffle.sort.io.plugin.class",
        "org.apache.spark.shuffle.sort.io.LocalDiskShuffleDataIO");
    assertThat(Activation.check(conf, true)).isTrue();
  }

  @Test
  void aBadValueStopsTheApplication() {
    final SparkConf conf = new SparkConf(false).set("spark.zerohop.enabled", "perhaps");
    assertThatThrownBy(() -> Activation.check(conf, true))
        .hasMessageContaining("spark.zerohop.enabled=perhaps");
  }
}
