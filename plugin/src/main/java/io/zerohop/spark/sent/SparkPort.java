package io.zerohop.spark.sent;

import io.zerohop.device.Undo;
import io.zerohop.device.posix.Clock;
import io.zerohop.shuffle.conf.Config;
import io.zerohop.shuffle.conf.Config.SentCodec;
import io.zerohop.shuffle.transport.remote.Carrier;
import io.zerohop.shuffle.transport.remote.Carrier.CarrierStarter;
import io.zerohop.shuffle.transport.remote.RemoteNode.RemoteThreads;
import io.zerohop.shuffle.transport.remote.Slabs;
import io.zerohop.spark.compat.SparkLinks;
import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import java.util.function.Supplier;
import org.apache.spark.SecurityManager;
import org.apache.spark.SparkConf;
import org.apache.spark.SparkEnv;
import org.apache.spark.storage.BlockManager;
import org.apache.spark.storage.BlockManagerId;
import org.jspecify.annotations.Nullable;
import scala.collection.Iterator;

/**
 * Starts what carries blocks over Spark's block ports, if the Spark at hand lets it. Immutable.
 *
 * @param security of Spark's connections
 * @param uploads brings what others send; stays the caller's
 * @param executorId this executor
 * @param self where its block port is
 * @param neighbours the block managers of the others, asked of the driver at each call; bytes go to
 *     no other address, whatever is requested
 */
public record SparkPort(
    SparkConf spark,
    Config conf,
    SecurityManager security,
    Uploads uploads,
    String executorId,
    Supplier<BlockManagerId> self,
    Supplier<? extends Collection<BlockManagerId>> neighbours)
    implements CarrierStarter {

  /** Of this executor. */
  public static SparkPort of(
      final SparkEnv env, final SparkConf spark, final Config conf, final Uploads uploads) {
    final BlockManager manager = env.blockManager();
    return new SparkPort(
        spark,
        conf,
        env.securityManager(),
        uploads,
        env.executorId(),
        manager::blockManagerId,
        () -> others(manager));
  }

  /** Returns how messages are compressed: not at all where Spark's compression is off. */
  SentCodec codec() {
    return spark.getBoolean("spark.shuffle.compress", true) ? conf.sentCodec() : SentCodec.NONE;
  }

  private static List<BlockManagerId> others(final BlockManager manager) {
    final List<BlockManagerId> others = new ArrayList<>();
    final Iterator<BlockManagerId> peers =
        SparkLinks.peers(manager.master(), manager.blockManagerId()).iterator();
    while (peers.hasNext()) {
      others.add(peers.next());
    }
    return others;
  }

  @Override
  public Carrier start(final RemoteThreads threads, final Slabs slabs, final Clock clock) {
    final PortCarrier carrier =
        new PortCarrier(this, new Connections(spark, security), threads, slabs, clock);
    try (Undo undo = new Undo(carrier::end)) {
      carrier.test();
      return undo.keep(carrier);
    }
  }

  /** The encryption of Spark's connections between executors. */
  public enum PortEncryption {
    NONE("not encrypted"),
    AES("encrypted by spark.network.crypto"),
    SASL("encrypted by SASL"),
    TLS("encrypted by TLS");

    private final String words;

    PortEncryption(final String words) {
      this.words = words;
    }

    /** Returns the encryption of a configuration, as far as this release of Spark has it. */
    public static PortEncryption of(final SparkConf conf) {
      final String version = org.apache.spark.package$.MODULE$.SPARK_VERSION();
      final boolean knowsTls = Integer.parseInt(version.substring(0, version.indexOf('.'))) >= 4;
      if (knowsTls && conf.getBoolean("spark.ssl.rpc.enabled", false)) {
        return TLS;
      }
      if (!conf.getBoolean("spark.authenticate", false)) {
        return NONE; // Spark's other keys do nothing without.
      }
      if (conf.getBoolean("spark.network.crypto.enabled", false)) {
        return AES;
      }
      return conf.getBoolean("spark.authenticate.enableSaslEncryption", false) ? SASL : NONE;
    }

    /** Returns the words for a connection. */
    String words() {
      return words;
    }

    /**
     * Returns why blocks must not be sent as they are: the user wants them encrypted on disks, and
     * Spark's block transfer also encrypts them on the way. Null if they may be.
     */
    public static @Nullable String obstacle(final SparkConf conf) {
      return conf.getBoolean("spark.io.encryption.enabled", false) && of(conf) == NONE
          ? "spark.io.encryption.enabled requires encryption, and Spark's connections have none"
          : null;
    }
  }
}
