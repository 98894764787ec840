package io.zerohop.spark.keeper;

import io.zerohop.device.ZerohopException;
import io.zerohop.device.host.AvailableMemory;
import io.zerohop.device.posix.Clock;
import io.zerohop.device.posix.NativeLibrary;
import io.zerohop.shuffle.ShuffleNode;
import io.zerohop.shuffle.conf.Config;
import io.zerohop.shuffle.keeper.Keeper;
import io.zerohop.shuffle.transport.ControlChannel;
import io.zerohop.shuffle.transport.ControlChannel.ControlService;
import io.zerohop.shuffle.transport.samenode.LeftFolder;
import io.zerohop.spark.compat.JarVersion;
import io.zerohop.spark.compat.SparkFeature;
import io.zerohop.spark.compat.SparkProbe;
import io.zerohop.spark.conf.ZerohopConf;
import io.zerohop.spark.control.SparkControlChannel;
import java.io.IOException;
import java.io.OutputStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Base64;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.Set;
import java.util.function.Function;
import java.util.function.IntFunction;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.apache.spark.SecurityManager;
import org.apache.spark.SparkConf;
import org.apache.spark.SparkEnv;
import org.apache.spark.rpc.RpcEnv;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import scala.Tuple2;

/**
 * The keeper's process. Who starts it, an executor or the node's daemon, gives it Spark's keys and
 * the secret by its standard input: secrets are neither in its arguments nor in its environment.
 */
public final class KeeperProcess {
  private static final Logger LOG = LoggerFactory.getLogger(KeeperProcess.class);
  private static final Duration GRACE = Duration.ofSeconds(10);
  private static final String SECRET = "secret";
  private static final String HOST = "host";
  private static final String LAST_PORT = "port";
  private static final String RELEASE = "release";
  private static final String DIRS = "dirs";

  /** As in Spark's own lists of directories. */
  private static final String COMMA = ",";

  /** The last of the orders: without it, who wrote them was killed meanwhile. */
  private static final String WHOLE = "whole";

  private static final String AUTHENTICATE = "spark.authenticate";

  private KeeperProcess() {}

  /**
   * Writes what the process reads.
   *
   * @param lastPort at which the node's last keeper answered other nodes; 0 if none is known
   */
  static void writeOrders(
      final SparkEnv env,
      final SparkConf spark,
      final byte[] secret,
      final int lastPort,
      final OutputStream out)
      throws IOException {
    final Properties orders = new Properties();
    for (final Tuple2<String, String> key : spark.getAll()) {
      orders.setProperty(key._1(), key._2());
    }
    if (spark.getBoolean(AUTHENTICATE, false)) {
      orders.setProperty(AUTHENTICATE + ".secret", env.securityManager().getSecretKey());
    }
    orders.setProperty(HOST, env.blockManager().blockManagerId().host());
    orders.setProperty(LAST_PORT, Integer.toString(lastPort));
    orders.setProperty(DIRS, localDirs(env));
    orders.setProperty(RELEASE, JarVersion.own());
    orders.setProperty(SECRET, Base64.getEncoder().encodeToString(secret));
    orders.store(out, null);
    out.write((WHOLE + "=\n").getBytes(StandardCharsets.ISO_8859_1));
  }

  /** Spark's local directories; those of this executor below them end with it. */
  private static String localDirs(final SparkEnv env) {
    return Stream.of(env.blockManager().diskBlockManager().localDirsString())
        .map(dir -> Path.of(dir).toAbsolutePath().getParent())
        .map(String::valueOf)
        .collect(Collectors.joining(COMMA));
  }

  /**
   * Keeps until nobody needs it. Ends with 0 also where another keeper runs.
   *
   * @param arguments a {@link KeeperShare}, from the daemon
   */
  public static void main(final String[] arguments) throws IOException, InterruptedException {
    final Properties orders = new Properties();
    orders.load(System.in);
    if (orders.remove(WHOLE) == null) {
      LOG.info("this keeper ends, as its orders ended with who wrote them");
      return;
    }
    final byte[] secret = Base64.getDecoder().decode((String) orders.remove(SECRET));
    final String host = String.valueOf(orders.remove(HOST));
    final int lastPort = Integer.parseInt(String.valueOf(orders.remove(LAST_PORT)));
    JarVersion.check(String.valueOf(orders.remove(RELEASE)), JarVersion.own(), "keeper");
    final String dirs = String.valueOf(orders.remove(DIRS));
    final SparkConf spark = new SparkConf(false);
    orders.stringPropertyNames().forEach(key -> spark.set(key, orders.getProperty(key)));
    final KeeperShare share = KeeperShare.of(arguments);
    if (share == null) {
      keep(spark, host, lastPort, secret, null, dirs);
      return;
    }
    NativeLibrary.require();
    try (KeeperShare.Held held = KeeperShare.take(share)) {
      if (held == null) {
        LOG.info("the daemon has given {} to another keeper, so this one ends", share.name());
        return;
      }
      keep(spark, host, lastPort, secret, share, share.files());
    }
  }

  private static void keep(
      final SparkConf spark,
      final String host,
      final int lastPort,
      final byte[] secret,
      final @Nullable KeeperShare share,
      final String dirs)
      throws InterruptedException {
    final Config conf = ZerohopConf.of(spark);
    final long bytes = share == null ? bytes(conf.keeper()) : KeeperShare.bytes(share.name());
    final Keeper.Limits limits =
        new Keeper.Limits(bytes, conf.keeper().life(), conf.keeper().filesIdle(), GRACE);
    final Path socketDir =
        share == null ? conf.socketDir() : share.socketDir(conf.socketDir(), spark.getAppId());
    try (Driver driver = new Driver(spark)) {
      final Keeper keeper;
      try {
        keeper =
            Keeper.start(
                ShuffleNode.socketFolder(socketDir, spark.getAppId(), secret),
                secret,
                limits,
                driver,
                mayOpen(spark, share == null ? null : host)
                    ? far(spark, conf, host, lastPort, secret)
                    : null,
                files(
                    spark, conf.keeper(), dirs, share == null ? Long.MAX_VALUE : share.fileBytes()),
                GpuCopyProcess.copier(secret, Clock.system()),
                JarVersion.own(),
                AvailableMemory::bytes,
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

  /**
   * Where outputs may go for which memory has no room; absent if nowhere.
   *
   * @param dirs a list with commas
   * @param most the keeper's share of the bytes of all files
   */
  static @Nullable LeftFolder files(
      final SparkConf spark, final Config.Keeper conf, final String dirs, final long most) {
    final List<Path> named =
        Stream.of(dirs.split(COMMA)).filter(dir -> !dir.isEmpty()).map(Path::of).toList();
    if (spark.getBoolean("spark.io.encryption.enabled", false)) {
      LOG.info("files would not be encrypted, so with spark.io.encryption.enabled none is written");
      return null;
    }
    if (named.isEmpty() || conf.filesSize() == 0 || most == 0) {
      LOG.info("map outputs stay in memory, since there is no directory for files, or no room");
      return null;
    }
    final LeftFolder folder = LeftFolder.open(named, conf.filesSize(), most, Clock.system());
    LOG.info("map outputs may go to files in {}, at most {} bytes", folder, folder.limit());
    return folder;
  }

  /**
   * Whether a port for other nodes is opened. What TLS does beside the channel is not tested.
   *
   * @param host the address at which others look for it, which a daemon in another network
   *     namespace does not have; absent if an executor has started this process
   */
  private static boolean mayOpen(final SparkConf spark, final @Nullable String host) {
    return SparkProbe.here().has(SparkFeature.UCX)
        && (host == null || SparkControlChannel.ownAddress(host) != null)
        && !spark.getBoolean("spark.ssl.rpc.enabled", false);
  }

  /** By the channel of the path {@code ucx}, which lets nobody in without the secret. */
  private static Function<ControlService, ControlChannel> far(
      final SparkConf spark,
      final Config conf,
      final String host,
      final int lastPort,
      final byte[] secret) {
    return service ->
        atLastPort(
            lastPort,
            conf.keeper().port(),
            port ->
                SparkControlChannel.ofKeeper(
                    spark,
                    conf.with("port", port),
                    security(spark),
                    SparkControlChannel.ownAddress(host),
                    secret,
                    service));
  }

  /**
   * Opens the channel at the port of the last keeper, which map statuses name, or as configured if
   * another process has it.
   *
   * @param last 0 if none is known
   */
  static ControlChannel atLastPort(
      final int last, final int configured, final IntFunction<ControlChannel> channels) {
    if (last > 0) {
      try {
        return channels.apply(last);
      } catch (final RuntimeException e) {
        LOG.info("port {} of the last keeper of this node is not free", last, e);
      }
    }
    return channels.apply(configured);
  }

  private static SecurityManager security(final SparkConf spark) {
    return new SecurityManager(
        spark,
        SecurityManager.$lessinit$greater$default$2(),
        SecurityManager.$lessinit$greater$default$3());
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
        connected = RpcEnv.create("zerohop-keeper", "localhost", 0, conf, security(conf), true);
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
