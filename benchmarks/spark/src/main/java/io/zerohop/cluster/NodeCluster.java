package io.zerohop.cluster;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import org.apache.commons.io.FileUtils;

/**
 * A standalone cluster of Spark over {@link TwoNodes}: a master and a worker on the first, a worker
 * on the second. Each node's executors have a folder of their own for sockets and one for files, as
 * nodes do, and its id as {@code spark.zerohop.node.id}.
 *
 * <p>Applications that it runs have to be submitted on the first node, see {@link
 * SparkApplication#start(String, SparkHome, Node, Submission, Path)}.
 */
public final class NodeCluster implements AutoCloseable {
  private static final int MASTER_PORT = 7077;
  private static final Duration START_LIMIT = Duration.ofSeconds(60);
  private static final Duration STOP_LIMIT = Duration.ofSeconds(20);
  private static final long POLL_MS = 50;
  private static final String JAVA_OPTIONS = "JDK_JAVA_OPTIONS";

  private final TwoNodes nodes;
  private final Installation installation;
  private final SparkHome home;
  private final Path folder;
  private final Deque<Process> daemons = new ArrayDeque<>();
  private final List<Path> socketFolders = new ArrayList<>();

  /**
   * What a worker offers to applications.
   *
   * @param cores how many tasks at a time
   * @param memoryMib for the heaps of all its executors
   */
  public record WorkerShape(int cores, int memoryMib) {}

  private NodeCluster(final TwoNodes nodes, final Installation installation, final Path folder)
      throws IOException {
    this.nodes = nodes;
    this.installation = installation;
    this.folder = folder.toAbsolutePath();
    this.home = installation.sparkHome().linkedAt(this.folder.resolve("home"));
  }

  /**
   * Starts master and workers; the workers are there when an application has its executors.
   *
   * @param folder for logs, sockets and files; has to be there
   * @param ofFirst what the first node's worker offers
   * @param ofSecond and the second's
   * @param conf Spark's configuration of master and workers, {@code spark.worker.timeout} for one
   */
  public static NodeCluster start(
      final TwoNodes nodes,
      final Installation installation,
      final Path folder,
      final WorkerShape ofFirst,
      final WorkerShape ofSecond,
      final Map<String, String> conf)
      throws IOException {
    final NodeCluster cluster = new NodeCluster(nodes, installation, folder);
    try {
      cluster.startMaster(conf);
      cluster.startWorker(nodes.first(), ofFirst, conf);
      cluster.startWorker(nodes.second(), ofSecond, conf);
      return cluster;
    } catch (final IOException | RuntimeException e) {
      cluster.close();
      throw e;
    }
  }

  /** The master's URL. */
  public String master() {
    return "spark://" + nodes.first().address() + ":" + MASTER_PORT;
  }

  /** Where Spark is started from, which has the executors' logs under {@code work}. */
  public SparkHome home() {
    return home;
  }

  /** Stops workers, executors and master. */
  @Override
  public void close() {
    while (!daemons.isEmpty()) {
      stop(daemons.removeLast());
    }
    socketFolders.forEach(NodeCluster::delete);
    socketFolders.clear();
  }

  private void startMaster(final Map<String, String> conf) throws IOException {
    final Node node = nodes.first();
    final Process master =
        start(
            node,
            NodeDaemon.MASTER,
            conf,
            Map.of(),
            List.of("--host", node.address(), "--port", "" + MASTER_PORT, "--webui-port", "0"));
    // A worker that comes too early tries again only after many seconds.
    final long end = System.nanoTime() + START_LIMIT.toNanos();
    while (!listens(master)) {
      if (!master.isAlive() || System.nanoTime() > end) {
        throw new ClusterException(
            "Spark's master does not listen at port " + MASTER_PORT + "; logs: " + folder);
      }
      sleep();
    }
  }

  private void startWorker(final Node node, final WorkerShape shape, final Map<String, String> conf)
      throws IOException {
    // A socket's path has to be short.
    final Path sockets = Files.createTempDirectory(Path.of("/tmp"), "zh-" + node.id());
    socketFolders.add(sockets);
    final Path files = Files.createDirectories(folder.resolve("local-" + node.id()));
    final String inherited = System.getenv(JAVA_OPTIONS);
    final String identity =
        "-Dspark.zerohop.node.id=" + node.id() + " -Dspark.zerohop.socket.dir=" + sockets;
    start(
        node,
        NodeDaemon.WORKER,
        conf,
        // Executors inherit it; what an application says holds for those of both nodes.
        Map.of(
            JAVA_OPTIONS,
            inherited == null ? identity : inherited + " " + identity,
            "SPARK_LOCAL_DIRS",
            files.toString()),
        List.of(
            "--host",
            node.address(),
            "--webui-port",
            "0",
            "--cores",
            Integer.toString(shape.cores()),
            "--memory",
            shape.memoryMib() + "m",
            "--work-dir",
            home.root().resolve("work").resolve(node.id()).toString(),
            master()));
  }

  private Process start(
      final Node node,
      final String role,
      final Map<String, String> conf,
      final Map<String, String> environment,
      final List<String> arguments)
      throws IOException {
    final List<String> options = new ArrayList<>(List.of("-Xmx256m", "-XX:+UseSerialGC"));
    conf.forEach((key, value) -> options.add("-D" + key + "=" + value));
    final List<String> words = new ArrayList<>(List.of(role));
    words.addAll(arguments);
    final Path log = folder.resolve(role + "-" + node.id() + ".log");
    final ProcessBuilder builder =
        new ProcessBuilder(
            node.command(
                home.javaCommand(
                    options,
                    List.of(installation.applicationJar()),
                    NodeDaemon.class.getName(),
                    words)));
    builder.environment().keySet().removeIf(key -> key.startsWith("SPARK_"));
    builder.environment().putAll(home.environment());
    builder.environment().put("SPARK_LOCAL_IP", node.address());
    builder.environment().putAll(environment);
    builder.redirectErrorStream(true).redirectOutput(log.toFile());
    final Process process = builder.start();
    daemons.add(process);
    return process;
  }

  /** A look at the sockets of the process' network, which takes no connection. */
  private static boolean listens(final Process process) throws IOException {
    final String address = String.format(Locale.ROOT, ":%04X ", MASTER_PORT);
    for (final String family : List.of("tcp", "tcp6")) {
      final Path sockets = Path.of("/proc", Long.toString(process.pid()), "net", family);
      if (Files.exists(sockets)
          && Files.readString(sockets)
              .lines()
              .anyMatch(line -> line.contains(address) && line.contains(" 0A "))) {
        return true;
      }
    }
    return false;
  }

  private static void stop(final Process daemon) {
    try {
      daemon.getOutputStream().close();
      if (daemon.waitFor(STOP_LIMIT.toMillis(), TimeUnit.MILLISECONDS)) {
        return;
      }
    } catch (final IOException e) {
      // It is already gone, which is what closing wants.
    } catch (final InterruptedException e) {
      Thread.currentThread().interrupt();
    }
    daemon.descendants().forEach(ProcessHandle::destroyForcibly);
    daemon.destroyForcibly();
  }

  /** Executors that were killed have left their sockets; the others may have left no folder. */
  private static void delete(final Path folder) {
    try {
      if (Files.exists(folder)) {
        FileUtils.deleteDirectory(folder.toFile());
      }
    } catch (final IOException e) {
      throw new ClusterException("deleting " + folder, e);
    }
  }

  private static void sleep() {
    try {
      Thread.sleep(POLL_MS);
    } catch (final InterruptedException e) {
      Thread.currentThread().interrupt();
      throw new ClusterException("the start of a cluster was interrupted", e);
    }
  }
}
