package io.zerohop.spark.blocktransfer.sent;

import io.zerohop.device.posix.Clock;
import io.zerohop.shuffle.transport.remote.carrier.Carrier;
import io.zerohop.shuffle.transport.remote.carrier.CarrierStarter;
import io.zerohop.shuffle.transport.remote.memory.Slabs;
import io.zerohop.spark.compat.SparkLinks;
import io.zerohop.spark.conf.ZerohopConf;
import io.zerohop.spark.conf.ZerohopConf.SentCodec;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Executor;
import java.util.function.Function;
import java.util.function.Supplier;
import org.apache.spark.SecurityManager;
import org.apache.spark.SparkConf;
import org.apache.spark.SparkEnv;
import org.apache.spark.storage.BlockManager;
import org.apache.spark.storage.BlockManagerId;
import scala.collection.Iterator;

/** Starts the carrier of blocks over Spark's block ports, if this Spark supports it. */
public final class SparkPort implements CarrierStarter {
  private final SparkConf conf;
  private final SecurityManager security;
  private final Uploads uploads;
  private final Function<Clock, PortSettings> settings;

  private SparkPort(
      final SparkConf conf,
      final SecurityManager security,
      final Uploads uploads,
      final Function<Clock, PortSettings> settings) {
    this.conf = conf;
    this.security = security;
    this.uploads = uploads;
    this.settings = settings;
  }

  /** Creates the port of this executor. */
  public static SparkPort of(final SparkEnv env, final SparkConf conf, final Uploads uploads) {
    final BlockManager manager = env.blockManager();
    return of(
        conf,
        env.securityManager(),
        uploads,
        env.executorId(),
        manager::blockManagerId,
        () -> others(manager));
  }

  /**
   * Creates the port of any executor.
   *
   * @param uploads brings what others send; stays the caller's
   * @param self where its block port is
   * @param neighbours where the others' are
   */
  public static SparkPort of(
      final SparkConf conf,
      final SecurityManager security,
      final Uploads uploads,
      final String executorId,
      final Supplier<BlockManagerId> self,
      final Neighbours neighbours) {
    return new SparkPort(
        conf,
        security,
        uploads,
        clock ->
            new PortSettings(
                executorId,
                self,
                neighbours,
                PortEncryption.of(conf).words(),
                codec(conf),
                Duration.ofMillis(ZerohopConf.CONNECT_TIMEOUT.get(conf)),
                Duration.ofMillis(ZerohopConf.DEVICE_TIMEOUT.get(conf)),
                clock));
  }

  /** Who has switched Spark's compression off, gets none. */
  private static SentCodec codec(final SparkConf conf) {
    return conf.getBoolean("spark.shuffle.compress", true)
        ? ZerohopConf.SENT_CODEC.get(conf)
        : SentCodec.NONE;
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
  public Carrier start(
      final Executor sends, final Executor arrivals, final Slabs slabs, final Clock clock) {
    final PortCarrier carrier =
        new PortCarrier(
            settings.apply(clock),
            uploads,
            new Connections(conf, security),
            sends,
            arrivals,
            slabs);
    boolean done = false;
    try {
      carrier.test();
      done = true;
      return carrier;
    } finally {
      if (!done) {
        carrier.end();
      }
    }
  }
}
