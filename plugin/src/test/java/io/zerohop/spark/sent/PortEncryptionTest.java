package io.zerohop.spark.sent;

import static org.assertj.core.api.Assertions.assertThat;

import io.zerohop.spark.sent.PortCarrier.PortEncryption;
import org.apache.spark.SparkConf;
import org.junit.jupiter.api.Test;

class PortEncryptionTest {
  private static SparkConf conf(final String... keys) {
    final SparkConf conf = new SparkConf(false);
    for (final String key : keys) {
      conf.set(key, "true");
    }
    return conf;
  }

  @Test
  void sparksKeysSayIt() {
    assertThat(PortEncryption.of(conf())).isEqualTo(PortEncryption.NONE);
    assertThat(PortEncryption.of(conf("spark.authenticate"))).isEqualTo(PortEncryption.NONE);
    assertThat(PortEncryption.of(conf("spark.authenticate", "spark.network.crypto.enabled")))
        .isEqualTo(PortEncryption.AES);
    assertThat(
            PortEncryption.of(
                conf("spark.authenticate", "spark.authenticate.enableSaslEncryption")))
        .isEqualTo(PortEncryption.SASL);
    assertThat(PortEncryption.of(conf("spark.ssl.rpc.enabled"))).isEqualTo(PortEncryption.TLS);
  }

  @Test
  void keysThatSparkDoesNotHeedWithoutProofEncryptNothing() {
    assertThat(PortEncryption.of(conf("spark.network.crypto.enabled")))
        .isEqualTo(PortEncryption.NONE);
  }

  @Test
  void blocksThatAreToBeEncryptedGoByNoPlainConnection() {
    assertThat(PortEncryption.obstacle(conf("spark.io.encryption.enabled")))
        .contains("spark.io.encryption.enabled");
    assertThat(
            PortEncryption.obstacle(
                conf(
                    "spark.io.encryption.enabled",
                    "spark.authenticate",
                    "spark.network.crypto.enabled")))
        .isNull();
    assertThat(PortEncryption.obstacle(conf())).isNull();
  }
}
