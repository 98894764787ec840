package io.zerohop.spark.versions;

import java.net.InetAddress;
import java.net.ServerSocket;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;
import org.apache.spark.SparkConf;
import org.apache.spark.SparkContext;
import org.apache.spark.scheduler.AccumulableInfo;
import org.apache.spark.scheduler.SparkListener;
import org.apache.spark.scheduler.SparkListenerTaskEnd;
import scala.jdk.javaapi.CollectionConverters;

/**
 * An application with a server of Spark Connect in its driver, as Spark's own start script has it.
 * It runs one client and ends.
 */
public final class ConnectServerApp {
  private static final long LIMIT_SECONDS = 150;

  private ConnectServerApp() {}

  /** Arguments: the client's command, to which the address of the server is added. */
  public static void main(final String[] arguments) throws Exception {
    final int port = freePort();
    final SparkConf conf =
        new SparkConf()
            .setAppName("connect")
            .set("spark.plugins", "org.apache.spark.sql.connect.SparkConnectPlugin")
            .set("spark.connect.grpc.binding.address", "127.0.0.1")
            .set("spark.connect.grpc.binding.port", Integer.toString(port));
    final SparkContext context = new SparkContext(conf);
    final PathBytes bytes = new PathBytes();
    context.addSparkListener(bytes);
    final int exit = runClient(arguments, "sc://127.0.0.1:" + port);
    context.stop(); // Listeners have heard everything then.
    System.out.println(
        "connect-server: exit="
            + exit
            + " peer="
            + bytes.bytes("peer")
            + " staged="
            + bytes.bytes("staged"));
  }

  /** Bytes that tasks have read, by path. */
  private static final class PathBytes extends SparkListener {
    private final Map<String, Long> read = new ConcurrentHashMap<>();

    @Override
    public void onTaskEnd(final SparkListenerTaskEnd end) {
      for (final AccumulableInfo info :
          CollectionConverters.asJava(end.taskInfo().accumulables())) {
        if (info.name().isDefined() && info.update().isDefined()) {
          final String name = info.name().get();
          if (name.startsWith("zerohop.")) {
            read.merge(name, Long.parseLong(info.update().get().toString()), Long::sum);
          }
        }
      }
    }

    long bytes(final String path) {
      return read.getOrDefault("zerohop." + path + ".bytes", 0L);
    }
  }

  private static int freePort() throws Exception {
    try (ServerSocket socket = new ServerSocket(0, 1, InetAddress.getLoopbackAddress())) {
      return socket.getLocalPort();
    }
  }

  private static int runClient(final String[] command, final String server) throws Exception {
    final List<String> words = new ArrayList<>(List.of(command));
    words.add(server);
    final ProcessBuilder builder = new ProcessBuilder(words).inheritIO();
    builder.environment().keySet().removeIf(name -> name.startsWith("SPARK_"));
    final Process client = builder.start();
    try {
      return client.waitFor(LIMIT_SECONDS, TimeUnit.SECONDS) ? client.exitValue() : -1;
    } finally {
      client.destroyForcibly();
    }
  }
}
