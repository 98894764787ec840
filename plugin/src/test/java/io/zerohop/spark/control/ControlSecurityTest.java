package io.zerohop.spark.control;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.zerohop.spark.conf.NetworkTrust;
import io.zerohop.spark.control.ControlConnector.ControlSecurity;
import java.util.Map;
import org.apache.spark.SecurityManager;
import org.apache.spark.SparkConf;
import org.apache.spark.network.util.TransportConf;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import scala.Option;

class ControlSecurityTest {

  @ParameterizedTest
  @ValueSource(
      strings = {
        "spark.network.crypto.enabled",
        "spark.authenticate.enableSaslEncryption",
        "spark.ssl.rpc.enabled",
        "spark.io.encryption.enabled"
      })
  void theKeyThatDemandsEncryptionIsNamed(final String key) {
    assertThat(NetworkTrust.encryptionDemandedBy(Map.of(key, "true")::get)).contains(key);
    assertThat(NetworkTrust.encryptionDemandedBy(Map.of(key, "false")::get)).isEmpty();
  }

  @Test
  void authenticationAloneDemandsNone() {
    assertThat(NetworkTrust.encryptionDemandedBy(Map.of("spark.authenticate", "true")::get))
        .isEmpty();
  }

  @Test
  void theProofIsOnWhateverTheUserSet() {
    final SparkConf conf =
        new SparkConf(false)
            .set("spark.network.crypto.enabled", "false")
            .set("spark.network.crypto.saslFallback", "true")
            .set("spark.network.timeout", "7s")
            .set("spark.zerohop-control.io.serverThreads", "3");
    final TransportConf own =
        ControlSecurity.transport(conf, new SecurityManager(conf, Option.empty(), null));
    assertThat(own.encryptionEnabled()).isTrue();
    assertThat(own.saslFallback()).isFalse();
    assertThat(own.authEngineVersion()).isEqualTo(2);
    assertThat(own.connectionTimeoutMs()).isEqualTo(7_000);
    assertThat(own.serverThreads()).isEqualTo(3);
    assertThat(own.clientThreads()).isEqualTo(2);
    assertThat(conf.get("spark.network.crypto.enabled")).isEqualTo("false");
  }

  @Test
  void whatIsFlippedUnderWayIsFoundOutUnlessTheUserWantsAnotherCipher() {
    final SparkConf conf = new SparkConf(false);
    final SecurityManager security = new SecurityManager(conf, Option.empty(), null);
    assertThat(ControlSecurity.transport(conf, security).cipherTransformation())
        .isEqualTo(ControlSecurity.GCM);
    conf.set(ControlSecurity.CIPHER, "AES/CTR/NoPadding");
    assertThat(ControlSecurity.transport(conf, security).cipherTransformation())
        .isEqualTo("AES/CTR/NoPadding");
    assertThat(ControlSecurity.hasSoundGcm("3.5.8")).isFalse();
    assertThat(ControlSecurity.hasSoundGcm("4.0.2")).isFalse();
    assertThat(ControlSecurity.hasSoundGcm("4.1.0-SNAPSHOT")).isTrue();
    assertThat(ControlSecurity.hasSoundGcm("5.0.0")).isTrue();
  }

  @Test
  void theKeyIsNotTheSecretAndOneUsersAlone() {
    final ControlSecurity security = new ControlSecurity(Channels.secret(1));
    final String key = security.getSecretKey(ControlSecurity.USER);
    assertThat(key).hasSize(64).doesNotContain("0101");
    assertThat(new ControlSecurity(Channels.secret(2)).getSecretKey(ControlSecurity.USER))
        .isNotEqualTo(key);
    assertThat(security.getSecretKey("somebody")).isNull();
    assertThatThrownBy(() -> new ControlSecurity(new byte[15]))
        .isInstanceOf(IllegalArgumentException.class);
  }
}
