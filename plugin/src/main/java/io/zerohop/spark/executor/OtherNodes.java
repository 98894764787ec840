package io.zerohop.spark.executor;

import io.zerohop.device.Message;
import io.zerohop.device.posix.Clock;
import io.zerohop.shuffle.ShuffleNode;
import io.zerohop.shuffle.block.BlockPath;
import io.zerohop.shuffle.conf.Config;
import io.zerohop.shuffle.transport.ControlChannel;
import io.zerohop.shuffle.transport.ControlChannel.ControlService;
import io.zerohop.shuffle.transport.remote.Carrier.CarrierStarter;
import io.zerohop.shuffle.transport.ucx.engine.NetworkDevices;
import io.zerohop.shuffle.transport.ucx.engine.NetworkDevices.RdmaDevices;
import io.zerohop.shuffle.transport.ucx.engine.UcxLoader;
import io.zerohop.spark.compat.SparkFeature;
import io.zerohop.spark.compat.SparkProbe;
import io.zerohop.spark.conf.NetworkTrust;
import io.zerohop.spark.conf.ZerohopConf;
import io.zerohop.spark.control.SparkControlChannel;
import io.zerohop.spark.log.SparkCode;
import io.zerohop.spark.sent.PortCarrier.PortEncryption;
import io.zerohop.spark.sent.PortCarrier.SparkPort;
import io.zerohop.spark.sent.Uploads;
import java.util.function.Function;
import org.apache.spark.SparkConf;
import org.apache.spark.SparkEnv;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Decides whether executors of other nodes are read by UCX, and how. UCX's protocol asks nobody for
 * a proof and encrypts nothing, so nothing is opened unless the user has said that the network is
 * trusted.
 */
public final class OtherNodes {
  private static final Logger LOG = LoggerFactory.getLogger(OtherNodes.class);

  /** What has blocks sent that {@link #sendObstacle} keeps from it. */
  public static final String SEND_REMEDY =
      "have 'sent' in spark.zerohop.paths, and encrypt the network where files are encrypted:"
          + " spark.network.crypto.enabled with spark.authenticate";

  /** What Spark calls a driver that runs tasks itself. */
  private static final String DRIVER = "driver";

  private OtherNodes() {}

  /**
   * Gives a node what it needs for that; says once why it gets nothing.
   *
   * @param gpu PCI address of this executor's GPU, if it has one
   */
  static void configure(
      final ShuffleNode.Setup setup,
      final SparkEnv env,
      final SparkConf spark,
      final Config conf,
      final byte[] secret,
      final @Nullable String gpu) {
    final Message obstacle = obstacle(spark);
    if (obstacle != null) {
      LOG.info("Zerohop: blocks of other nodes are not read by UCX: {}", obstacle);
      return;
    }
    final String host = env.blockManager().blockManagerId().host();
    final NetworkDevices devices = NetworkDevices.of(host, gpu).orElse(null);
    describe(devices, env.executorId(), host);
    setup.ucx(
        onStart -> UcxLoader.start(conf.ucx().jucx(), devices, onStart, Clock.system()),
        controlChannels(env, spark, conf, secret, host));
  }

  /**
   * Returns what lets a node send its blocks, and have others' sent, over Spark's own connections.
   * Null, with the reason in the log, if the user wants blocks encrypted and these are not.
   */
  static @Nullable CarrierStarter carrier(
      final SparkEnv env, final SparkConf spark, final Config conf, final Uploads uploads) {
    if (DRIVER.equals(env.executorId())) {
      return null; // It has no other executors.
    }
    final Message obstacle = sendObstacle(spark);
    if (obstacle != null) {
      LOG.info("Zerohop: blocks of other nodes are staged, and not sent: {}", obstacle);
      return null;
    }
    return SparkPort.of(env, spark, conf, uploads);
  }

  private static void describe(
      final @Nullable NetworkDevices devices, final String executorId, final String host) {
    if (devices == null && !NetworkDevices.areChosen()) {
      SparkCode.UCX_ON_ALL_INTERFACES
          .says("UCX listens on all interfaces of this host")
          .at(host)
          .because("no interface has this address")
          .remedy("name the interfaces by spark.executorEnv.UCX_NET_DEVICES")
          .warn(LOG);
    } else if (devices != null && RdmaDevices.any()) {
      LOG.info(
          "Zerohop: executor {} uses {} for RDMA (to choose others, set"
              + " spark.executorEnv.UCX_NET_DEVICES)",
          executorId,
          devices.adapters().describe());
    }
  }

  /** Returns why no port is opened for other nodes; null if one may be. */
  public static @Nullable Message obstacle(final SparkConf conf) {
    final Message lacks = SparkProbe.here().sentence(SparkFeature.UCX);
    return lacks == null ? NetworkTrust.obstacle(key -> conf.get(key, null)) : lacks;
  }

  /** Returns why no block is sent to other nodes, or comes from them so; null if they may be. */
  public static @Nullable Message sendObstacle(final SparkConf conf) {
    if (!ZerohopConf.of(conf).paths().contains(BlockPath.SENT)) {
      return Message.of("spark.zerohop.paths does not have 'sent'");
    }
    final Message lacks = SparkProbe.here().sentence(SparkFeature.SENT);
    if (lacks != null) {
      return lacks;
    }
    final String plain = PortEncryption.obstacle(conf);
    return plain == null ? null : SparkCode.SENDING_NOT_ENCRYPTED.says(plain);
  }

  private static Function<ControlService, ControlChannel> controlChannels(
      final SparkEnv env,
      final SparkConf spark,
      final Config conf,
      final byte[] secret,
      final String host) {
    final String address = SparkControlChannel.ownAddress(host);
    return service ->
        new SparkControlChannel(spark, conf, env.securityManager(), address, secret, service);
  }
}
