package io.zerohop.spark.keeper;

import io.zerohop.device.posix.Clock;
import io.zerohop.device.posix.Housekeeping;
import io.zerohop.shuffle.ShuffleNode;
import io.zerohop.spark.log.SparkCode;
import java.io.File;
import java.io.IOException;
import java.io.OutputStream;
import java.net.URI;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import org.apache.spark.SparkConf;
import org.apache.spark.SparkEnv;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Starts the keeper of this node where none runs, and again should it end. The process has a
 * session of its own and stays when this executor ends. Two executors may start one each: the
 * second ends at once. Thread safe.
 */
public final class KeeperStart implements AutoCloseable {
  private static final Logger LOG = LoggerFactory.getLogger(KeeperStart.class);
  private static final Duration PERIOD = Duration.ofMillis(500);

  /** Longer than a JVM takes to start on a busy machine. */
  private static final Duration RETRY = Duration.ofSeconds(20);

  /** Whatever keeps keepers from running is tried less and less often. */
  private static final Duration MAX_RETRY = Duration.ofMinutes(10);

  /** An executor's own: a debugger's port, an agent. */
  private static final Set<String> JVM_OPTIONS =
      Set.of("JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS", "_JAVA_OPTIONS");

  private static final String LOG_FILE = "zerohop-keeper.log";
  private static final List<String> SET_SID = List.of("/usr/bin/setsid", "/bin/setsid");

  private final SparkEnv env;
  private final SparkConf spark;
  private final ShuffleNode node;
  private final byte[] secret;
  private final Clock clock;
  private final Housekeeping.Chore chore;
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
    this.chore = node.housekeeping().everyLong("keeper", PERIOD, this::isMissing, this::round);
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

  private void round() {
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
    final List<String> command = new ArrayList<>();
    SET_SID.stream()
        .filter(path -> Files.isExecutable(Path.of(path)))
        .limit(1)
        .forEach(command::add);
    command.add(Path.of(System.getProperty("java.home"), "bin", "java").toString());
    command.addAll(List.of("-Xmx64m", "-Xss512k", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"));
    command.addAll(List.of("-XX:-UsePerfData", "-XX:MaxMetaspaceSize=96m"));
    command.addAll(List.of("-cp", classPath(), KeeperProcess.class.getName()));
    final ProcessBuilder builder = new ProcessBuilder(command);
    final File log = new File(LOG_FILE);
    builder.environment().keySet().removeAll(JVM_OPTIONS);
    builder.redirectErrorStream(true);
    builder.redirectOutput(ProcessBuilder.Redirect.appendTo(log));
    final Process process = builder.start();
    LOG.info("Zerohop: started a keeper, process {}, log {}", process.pid(), log.getAbsolutePath());
    try (OutputStream out = process.getOutputStream()) {
      KeeperProcess.writeOrders(env, spark, secret, out);
    }
  }

  /** What this executor has, and first the jar of this class: Spark may have loaded it itself. */
  private static String classPath() {
    final URI own =
        URI.create(
            KeeperProcess.class.getProtectionDomain().getCodeSource().getLocation().toString());
    return Path.of(own) + File.pathSeparator + System.getProperty("java.class.path");
  }

  /** Starts no more. A keeper that runs goes on. Idempotent. */
  @Override
  public void close() {
    chore.close();
  }
}
