package io.zerohop.spark.sent;

import io.zerohop.spark.compat.SparkLinks;
import io.zerohop.spark.conf.ZerohopConf;
import io.zerohop.spark.sent.PortCarrier.SparkPort;
import java.lang.reflect.Proxy;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import java.util.function.Supplier;
import org.apache.spark.SecurityManager;
import org.apache.spark.SparkConf;
import org.apache.spark.network.BlockDataManager;
import org.apache.spark.network.TransportContext;
import org.apache.spark.network.crypto.AuthServerBootstrap;
import org.apache.spark.network.netty.NettyBlockRpcServer;
import org.apache.spark.network.server.TransportServer;
import org.apache.spark.network.server.TransportServerBootstrap;
import org.apache.spark.network.util.TransportConf;
import org.apache.spark.serializer.JavaSerializer;
import org.apache.spark.storage.BlockManagerId;
import org.apache.spark.storage.ShuffleBlockBatchId;
import scala.Option;

/** The block port of one executor, served by Spark's own server, and its uploads. */
final class BlockPort implements AutoCloseable {
  static final String HOST = "127.0.0.1";

  private final String executorId;
  private final SparkConf conf;
  private final SecurityManager security;
  private final Uploads uploads = new Uploads();
  private final TransportContext context;
  private final TransportServer server;

  /** As when the executor is being decommissioned. */
  private volatile boolean leaving;

  /** Another port by which others reach it; 0 for its own. */
  private volatile int outside;

  BlockPort(final String executorId, final Map<String, String> settings) {
    this.executorId = executorId;
    conf = new SparkConf(false).set("spark.app.id", "app-sent");
    // Several connections to a reader, as by default on 8 cores or more. Suites of Spark have one
    // where there are fewer.
    conf.set("spark.shuffle.io.clientThreads", "4");
    settings.forEach(conf::set);
    security = new SecurityManager(conf, Option.empty(), null);
    final TransportConf transport =
        new TransportConf("shuffle", SparkLinks.newRpcConfig(security, conf));
    final List<TransportServerBootstrap> proof =
        security.isAuthenticationEnabled()
            ? List.of(new AuthServerBootstrap(transport, security))
            : List.of();
    context =
        new TransportContext(
            transport, new NettyBlockRpcServer("app-sent", new JavaSerializer(conf), manager()));
    server = context.createServer(HOST, 0, proof);
  }

  /** Of what Spark's block manager does for others only that it takes uploads. */
  private BlockDataManager manager() {
    return (BlockDataManager)
        Proxy.newProxyInstance(
            getClass().getClassLoader(),
            new Class<?>[] {BlockDataManager.class},
            (self, method, arguments) -> {
              if (!method.getName().equals("putBlockDataAsStream")) {
                throw new UnsupportedOperationException(method.getName());
              }
              if (leaving) {
                throw new IllegalStateException("the block manager is being decommissioned");
              }
              return uploads.take((ShuffleBlockBatchId) arguments[0]);
            });
  }

  /** What the executor's node is started with. */
  SparkPort carrier(final Supplier<? extends Collection<BlockManagerId>> neighbours) {
    return new SparkPort(
        conf, ZerohopConf.of(conf), security, uploads, executorId, this::inside, neighbours);
  }

  SparkConf conf() {
    return conf;
  }

  SecurityManager security() {
    return security;
  }

  Uploads uploads() {
    return uploads;
  }

  private BlockManagerId inside() {
    return BlockManagerId.apply(executorId, HOST, server.getPort(), Option.empty());
  }

  /** Where others find it. */
  BlockManagerId address() {
    return outside == 0
        ? inside()
        : BlockManagerId.apply(executorId, HOST, outside, Option.empty());
  }

  int port() {
    return server.getPort();
  }

  /** From now on others are told of this port. */
  void behind(final int port) {
    outside = port;
  }

  /** From now on it takes no uploads. */
  void leave() {
    leaving = true;
  }

  @Override
  public void close() {
    server.close();
    context.close();
  }
}
