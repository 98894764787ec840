package io.zerohop.spark.conf;

import io.zerohop.device.Message;
import io.zerohop.shuffle.block.BlockPath;
import io.zerohop.shuffle.conf.Config;
import io.zerohop.shuffle.conf.Keys;
import io.zerohop.spark.log.SparkCode;
import java.util.List;
import java.util.Optional;
import java.util.function.UnaryOperator;
import org.jspecify.annotations.Nullable;

/**
 * Decides whether ports may be opened for executors of other nodes. UCX's protocol does not
 * authenticate peers and encrypts nothing, so the user has to say that the network is trusted.
 * Executors and the doctor ask this class alone. It needs no class of Spark's, since the doctor
 * also runs without.
 */
public final class NetworkTrust {
  private static final List<String> ENCRYPTION =
      List.of(
          "spark.network.crypto.enabled",
          "spark.authenticate.enableSaslEncryption",
          "spark.ssl.rpc.enabled",
          "spark.io.encryption.enabled");

  private NetworkTrust() {}

  /**
   * Returns why no port may be opened for other nodes; null if one may be.
   *
   * @param settings the value of a key; null if it is not set
   * @throws IllegalArgumentException if a value is not valid; then no port may be opened either
   */
  public static @Nullable Message obstacle(final UnaryOperator<String> settings) {
    final Config conf = Config.read(settings);
    if (!conf.paths().contains(BlockPath.UCX)) {
      return SparkCode.UCX_LEFT_OUT.says("spark.zerohop.paths does not have 'ucx'");
    }
    if (!conf.ucx().trustedNetwork()) {
      return SparkCode.NETWORK_NOT_TRUSTED.says(
          "UCX is off; where only trusted programs reach the network, "
              + "spark.zerohop.ucx.trustedNetwork=true turns it on, over RDMA where there are adapters");
    }
    return encryptionDemandedBy(settings)
        .map(key -> key + " demands encryption, and UCX does not encrypt")
        .map(SparkCode.ENCRYPTION_DEMANDED::says)
        .orElse(null);
  }

  /**
   * Returns the key by which the user demands that blocks are encrypted outside of executors, on
   * the network or on disks, if there is one. UCX does not encrypt: blocks go another way then.
   *
   * @param settings the value of a key; null if it is not set
   * @throws IllegalArgumentException if a value is neither true nor false
   */
  public static Optional<String> encryptionDemandedBy(final UnaryOperator<String> settings) {
    return ENCRYPTION.stream().filter(key -> Keys.isTrue(key, settings.apply(key))).findFirst();
  }
}
