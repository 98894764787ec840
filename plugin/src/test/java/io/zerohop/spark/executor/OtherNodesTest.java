package io.zerohop.spark.executor;

import static org.assertj.core.api.Assertions.assertThat;

import io.zerohop.spark.LocalSpark;
import io.zerohop.spark.conf.ZerohopConf;
import io.zerohop.spark.sent.Uploads;
import java.nio.file.Path;
import org.apache.spark.SparkConf;
import org.apache.spark.SparkEnv;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.junit.jupiter.api.io.TempDir;

class OtherNodesTest {
  private static final String TRUSTED = "spark.zerohop.ucx.trustedNetwork";

  @RegisterExtension static final LocalSpark SPARK = new LocalSpark();

  @TempDir private Path folder;

  private final SparkConf conf = new SparkConf(false);

  @Test
  void nothingIsOpenedUnlessTheUserTrustsTheNetwork() {
    assertThat(OtherNodes.obstacle(conf)).asString().contains(TRUSTED + "=true");
    assertThat(OtherNodes.obstacle(conf.set("spark.authenticate", "true")))
        .asString()
        .contains(TRUSTED);
    assertThat(OtherNodes.obstacle(conf.set(TRUSTED, "true"))).isNull();
  }

  @Test
  void nothingIsOpenedWhereThePathIsNotWanted() {
    conf.set(TRUSTED, "true").set("spark.zerohop.paths", "local,staged");
    assertThat(OtherNodes.obstacle(conf)).asString().startsWith("spark.zerohop.paths");
  }

  @Test
  void nothingIsOpenedWhereEncryptionIsDemanded() {
    conf.set(TRUSTED, "true").set("spark.network.crypto.enabled", "true");
    assertThat(OtherNodes.obstacle(conf))
        .asString()
        .startsWith("spark.network.crypto.enabled demands");
  }

  @Test
  void nothingIsSentInPlainWhereFilesAreEncrypted() {
    assertThat(sends(conf)).isTrue();
    conf.set("spark.io.encryption.enabled", "true");
    assertThat(sends(conf)).as("without encryption of the network").isFalse();
    conf.set("spark.network.crypto.enabled", "true");
    assertThat(sends(conf)).as("which there is not without a proof").isFalse();
    conf.set("spark.authenticate", "true");
    assertThat(sends(conf)).as("with encryption of the network").isTrue();
  }

  @Test
  void nothingIsSentWhereThePathIsNotWanted() {
    assertThat(sends(conf.set("spark.zerohop.paths", "local,peer,staged"))).isFalse();
  }

  /** Whether an executor of this configuration has something that sends. */
  private boolean sends(final SparkConf of) {
    final SparkEnv env = SPARK.context().env();
    final SparkEnv executor =
        new SparkEnv(
            "1",
            env.rpcEnv(),
            env.serializer(),
            env.closureSerializer(),
            env.serializerManager(),
            env.mapOutputTracker(),
            env.broadcastManager(),
            env.blockManager(),
            env.securityManager(),
            env.metricsSystem(),
            env.outputCommitCoordinator(),
            of);
    return OtherNodes.carrier(executor, of, ZerohopConf.of(of), new Uploads()) != null;
  }
}
