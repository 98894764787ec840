package io.zerohop.spark.keeper;

import io.zerohop.device.Message;
import io.zerohop.device.ZerohopException;
import io.zerohop.device.posix.Clock;
import io.zerohop.device.posix.Descriptor;
import io.zerohop.device.posix.Housekeeping;
import io.zerohop.shuffle.ShuffleNode;
import io.zerohop.shuffle.conf.Config;
import io.zerohop.shuffle.keeper.KeeperStats;
import io.zerohop.spark.conf.ZerohopConf;
import io.zerohop.spark.log.SparkCode;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.OutputStream;
import java.nio.file.FileAlreadyExistsException;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.OpenOption;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.nio.file.attribute.FileAttribute;
import java.nio.file.attribute.PosixFilePermissions;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.time.Duration;
import java.util.List;
import java.util.Set;
import org.apache.spark.SparkConf;
import org.apache.spark.SparkEnv;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Starts the keeper of this node where none runs, and again should it end: by the node's daemon, or
 * as a process with a session of its own, which stays when this executor ends. Two executors may
 * start one each: one of them ends at once. Thread safe.
 */
public final class KeeperStart implements AutoCloseable {
  private static final Logger LOG = LoggerFactory.getLogger(KeeperStart.class);
  private static final Duration PERIOD = Duration.ofMillis(500);

  /** How often the keeper is asked what it holds. */
  private static final Duration ASK = Duration.ofSeconds(5);

  /** Longer than a JVM takes to start on a busy machine. */
  private static final Duration RETRY = Duration.ofSeconds(20);

  /** Whatever keeps keepers from running is tried less and less often. */
  private static final Duration MAX_RETRY = Duration.ofMinutes(10);

  /** For a daemon that answers at once, or never. */
  private static final Duration DAEMON_LIMIT = Duration.ofSeconds(3);

  private static final String LOG_FOLDER = "zerohop-keeper";
  private static final String LOG_FILE = "zerohop-keeper.log";
  private static final FileAttribute<?> FOR_OWNER =
      PosixFilePermissions.asFileAttribute(PosixFilePermissions.fromString("rwx------"));

  private final SparkEnv env;
  private final SparkConf spark;
  private final ShuffleNode node;
  private final byte[] secret;
  private final Clock clock;
  private final Housekeeping.Chore chore;
  private volatile KeeperStats stats = KeeperStats.NONE;
  private long askAt;
  private long startAt;
  private Duration retry = RETRY;

  private KeeperStart(
      final SparkEnv env,
      final SparkConf spark,
      final ShuffleNode node,
      final byte[] secret,
      final Clock clock) {
    this.env = env;
    this.spark = spark;
    this.node = node;
    this.secret = secret.clone();
    this.clock = clock;
    this.startAt = clock.nanos();
    this.askAt = clock.nanos();
    this.chore = node.housekeeping().everyLong("keeper", PERIOD, this::isDue, this::round);
    chore.hurry();
  }

  /** Begins to look whether one runs. */
  public static KeeperStart begin(
      final SparkEnv env, final SparkConf spark, final ShuffleNode node, final byte[] secret) {
    LOG.info("Zerohop: a keeper holds the map outputs of executor {}", env.executorId());
    return new KeeperStart(env, spark, node, secret, Clock.system());
  }

  private boolean isMissing() {
    if (node.hasKeeper()) {
      retry = RETRY;
      return false;
    }
    return true;
  }

  private boolean isDue() {
    return isMissing() || clock.isOver(askAt);
  }

  /**
   * What the keeper of this node said last; a few seconds old. Of none as long as it is missing.
   */
  public KeeperStats stats() {
    return node.hasKeeper() ? stats : KeeperStats.NONE;
  }

  private void ask() {
    askAt = clock.in(ASK);
    try {
      stats = node.keeperStats(secret);
    } catch (final ZerohopException e) {
      LOG.debug("the keeper does not say what it holds", e);
    }
  }

  private void round() {
    if (isMissing()) {
      stats = KeeperStats.NONE;
      askAt = clock.nanos(); // The next one is asked as soon as it is there.
    } else {
      ask();
    }
    if (isMissing() && clock.isOver(startAt) && !node.keeperRuns()) {
      startAt = clock.in(retry);
      retry = retry.compareTo(MAX_RETRY) < 0 ? retry.multipliedBy(2) : MAX_RETRY;
      try {
        start();
      } catch (final IOException e) {
        SparkCode.KEEPER_NOT_STARTED
            .says("cannot start a keeper, so map outputs in memory end with their executor")
            .because(e)
            .warn(LOG, e);
      }
    }
  }

  private void start() throws IOException {
    final ByteArrayOutputStream orders = new ByteArrayOutputStream();
    KeeperProcess.writeOrders(env, spark, secret, node.lastKeeperPort(), orders);
    final String classPath = KeeperLaunch.classPath();
    if (isLeftToDaemon(classPath, orders.toByteArray())) {
      return;
    }
    final ProcessBuilder builder = KeeperLaunch.process(classPath, List.of());
    final Path log = logFile(Path.of(""));
    builder.redirectOutput(ProcessBuilder.Redirect.appendTo(log.toFile()));
    final Process process = builder.start();
    LOG.info("Zerohop: started a keeper, process {}, log {}", process.pid(), log.toAbsolutePath());
    try (OutputStream out = process.getOutputStream()) {
      orders.writeTo(out);
    }
  }

  /**
   * Asks the daemon of this node for a keeper, if there is one.
   *
   * @return false if this executor is to start the keeper; true also if there is to be none now
   */
  private boolean isLeftToDaemon(final String classPath, final byte[] orders) {
    final Config.Keeper conf = ZerohopConf.of(spark).keeper();
    final Path folder = DaemonLink.folder(conf.daemon());
    if (conf.daemon() == null && !Files.exists(folder)) {
      return false;
    }
    Message why;
    try {
      final DaemonLink.Answer answer =
          DaemonLink.ask(
              folder,
              new DaemonLink.Start(
                  conf.size(), conf.filesSize(), application(secret), classPath, orders),
              DAEMON_LIMIT);
      switch (answer.kind()) {
        case STARTED, RUNNING -> {
          LOG.info("Zerohop: a keeper of the daemon at {}: {}", folder, answer.text());
          return true;
        }
        case FULL -> {
          SparkCode.KEEPER_DAEMON_FULL
              .says("the daemon starts no keeper now, so map outputs end with their executor")
              .at(folder.toString())
              .because(answer.text())
              .warn(LOG);
          return true;
        }
        default -> why = Message.of(answer.text());
      }
    } catch (final ZerohopException e) {
      why = e.message();
    }
    SparkCode.KEEPER_DAEMON_NOT_USED
        .says("the daemon has started no keeper, so this executor starts one")
        .at(folder.toString())
        .because(why)
        .warn(LOG);
    return false;
  }

  /** Names the application to the daemon, which is handed the secret as well. */
  static byte[] application(final byte[] secret) {
    try {
      return MessageDigest.getInstance("SHA-256").digest(secret);
    } catch (final NoSuchAlgorithmException e) {
      throw new IllegalStateException(e);
    }
  }

  /**
   * Returns the log in a folder that nobody else may enter: where others may write, they could put
   * a link in its place, and the keeper would write to what that leads to.
   *
   * @throws IOException if the folder is a link, not this user's or open to others, or the log is a
   *     link
   */
  static Path logFile(final Path folder) throws IOException {
    final Path own = folder.resolve(LOG_FOLDER);
    try {
      Files.createDirectory(own, FOR_OWNER);
    } catch (final FileAlreadyExistsException e) {
      LOG.debug("an earlier executor or keeper has made {}", own, e);
    }
    if (!Descriptor.statusOf(own.toAbsolutePath().toString()).isPrivateFolder()) {
      throw new IOException(own.toAbsolutePath() + " is not a folder of this user alone");
    }
    final Path log = own.resolve(LOG_FILE);
    final Set<OpenOption> asItIs =
        Set.of(StandardOpenOption.CREATE, StandardOpenOption.APPEND, LinkOption.NOFOLLOW_LINKS);
    Files.newByteChannel(log, asItIs).close();
    return log;
  }

  /** Starts no more. A keeper that runs goes on. Idempotent. */
  @Override
  public void close() {
    chore.close();
  }
}
