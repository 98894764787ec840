package io.zerohop.spark.executor;

import static org.assertj.core.api.Assertions.assertThat;

import org.apache.spark.SparkConf;
import org.junit.jupiter.api.Test;

class OtherNodesTest {
  private static final String TRUSTED = "spark.zerohop.ucx.trustedNetwork";

  private final SparkConf conf = new SparkConf(false);

  @Test
  void nothingIsOpenedUnlessTheUserTrustsTheNetwork() {
    assertThat(OtherNodes.obstacle(conf)).contains(TRUSTED + "=true");
    assertThat(OtherNodes.obstacle(conf.set("spark.authenticate", "true"))).contains(TRUSTED);
    assertThat(OtherNodes.obstacle(conf.set(TRUSTED, "true"))).isNull();
  }

  @Test
  void nothingIsOpenedWhereThePathIsNotWanted() {
    conf.set(TRUSTED, "true").set("spark.zerohop.paths", "local,staged");
    assertThat(OtherNodes.obstacle(conf)).startsWith("spark.zerohop.paths");
  }

  @Test
  void nothingIsOpenedWhereEncryptionIsDemanded() {
    conf.set(TRUSTED, "true").set("spark.network.crypto.enabled", "true");
    assertThat(OtherNodes.obstacle(conf)).startsWith("spark.network.crypto.enabled demands");
  }
}
