package io.zerohop.spark.keeper;

import io.zerohop.device.ZerohopException;
import io.zerohop.device.host.AvailableMemory;
import io.zerohop.device.posix.Clock;
import io.zerohop.shuffle.ShuffleNode;
import io.zerohop.shuffle.conf.Config;
import io.zerohop.shuffle.keeper.Keeper;
import io.zerohop.spark.conf.ZerohopConf;
import java.io.IOException;
import java.io.OutputStream;
import java.time.Duration;
import java.util.Base64;
import java.util.Map;
import java.util.Properties;
import java.util.Set;
import org.apache.spark.SecurityManager;
import org.apache.spark.SparkConf;
import org.apache.spark.SparkEnv;
import org.apache.spark.rpc.RpcEnv;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import scala.Tuple2;

/**
 * The keeper's process. An executor starts it and gives it Spark's keys and the secret by its
 * standard input: secrets are neither in its arguments nor in its environment.
 */
public final class KeeperProcess {
  private static final Logger LOG = LoggerFactory.getLogger(KeeperProcess.class);
  private static final Duration GRACE = Duration.ofSeconds(10);
  private static final String SECRET = "secret";
  private static final String AUTHENTICATE = "spark.authenticate";

  private KeeperProcess() {}

  /** Writes what the process reads. */
  static void writeOrders(
      final SparkEnv env, final SparkConf spark, final byte[] secret, final OutputStream out)
      throws IOException {
    final Properties orders = new Properties();
    for (final Tuple2<String, String> key : spark.getAll()) {
      orders.setProperty(key._1(), key._2());
    }
    if (spark.getBoolean(AUTHENTICATE, false)) {
      orders.setProperty(AUTHENTICATE + ".secret", env.securityManager().getSecretKey());
    }
    orders.setProperty(SECRET, Base64.getEncoder().encodeToString(secret));
    orders.store(out, null);
  }

  /** Keeps until nobody needs it. Ends with 0 also where another keeper runs. */
  public static void main(final String[] arguments) throws IOException, InterruptedException {
    final Properties orders = new Properties();
    orders.load(System.in);
    final byte[] secret = Base64.getDecoder().decode((String) orders.remove(SECRET));
    final SparkConf spark = new SparkConf(false);
    orders.stringPropertyNames().forEach(key -> spark.set(key, orders.getProperty(key)));
    final Config conf = ZerohopConf.of(spark);
    final Keeper.Limits limits =
        new Keeper.Limits(bytes(conf.keeper()), conf.keeper().life(), GRACE);
    try (Driver driver = new Driver(spark)) {
      final Keeper keeper;
      try {
        keeper =
            Keeper.start(
                ShuffleNode.socketFolder(conf.socketDir(), spark.getAppId(), secret),
                secret,
                limits,
                driver,
                Clock.system());
      } catch (final ZerohopException e) {
        LOG.info("this keeper ends, as another one runs or none can: {}", e.getMessage());
        return;
      }
      LOG.info("keeping map outputs of {}, at most {} bytes", spark.getAppId(), limits.bytes());
      try (keeper) {
        keeper.run();
      }
    }
    LOG.info("nobody needs this keeper any more");
  }

  /** Half of what there is: executors of other applications, and those to come, want some. */
  private static long bytes(final Config.Keeper conf) {
    return conf.size() == Config.AUTO
        ? Math.min(AvailableMemory.machineTotalBytes(), AvailableMemory.limitBytes()) / 2
        : conf.size();
  }

  /** The driver, by Spark's own RPC. It is connected to once something is left. */
  private static final class Driver implements Keeper.Driver, AutoCloseable {
    private final SparkConf conf;
    private volatile @Nullable RpcEnv env;

    private Driver(final SparkConf conf) {
      this.conf = conf;
    }

    @Override
    public Set<Integer> report(
        final String executorId, final @Nullable Map<Integer, Set<Long>> outputs) {
      RpcEnv connected = env;
      if (connected == null) {
        connected =
            RpcEnv.create(
                "zerohop-keeper",
                "localhost",
                0,
                conf,
                new SecurityManager(
                    conf,
                    SecurityManager.$lessinit$greater$default$2(),
                    SecurityManager.$lessinit$greater$default$3()),
                true);
        env = connected;
      }
      return KeptOutputs.report(connected, conf, executorId, outputs);
    }

    @Override
    public void close() {
      final RpcEnv connected = env;
      if (connected != null) {
        connected.shutdown();
      }
    }
  }
}
