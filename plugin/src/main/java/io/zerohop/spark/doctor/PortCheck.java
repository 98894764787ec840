package io.zerohop.spark.doctor;

import io.zerohop.spark.conf.ZerohopConf;
import java.io.IOException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.util.function.UnaryOperator;

/** Whether the port for other nodes, or one behind it, can be served on this host. */
final class PortCheck implements Check {
  private static final String DEFAULT_RETRIES = "16";
  private static final int MOST = 65_535;

  private final int first;
  private final int retries;

  /**
   * @param settings the value of a key; null if it is not set
   */
  PortCheck(final UnaryOperator<String> settings) {
    first = ZerohopConf.PORT.of(settings.apply(ZerohopConf.PORT.key()));
    final String set = settings.apply("spark.port.maxRetries");
    retries = Integer.parseInt(set == null ? DEFAULT_RETRIES : set.trim());
  }

  @Override
  public void run(final Notes notes) {
    if (first == 0) {
      notes.add(Finding.ok(Item.PORT, "spark.zerohop.port is 0: any free port is taken"));
      return;
    }
    IOException last = null;
    for (int port = first; port <= Math.min(MOST, first + retries); port++) {
      try (ServerSocket socket = new ServerSocket(port, 1, InetAddress.getLocalHost())) {
        notes.add(Finding.ok(Item.PORT, "port " + socket.getLocalPort() + " is free on this host"));
        return;
      } catch (final IOException e) {
        last = e;
      }
    }
    notes.add(
        Finding.fail(
            Item.PORT,
            "no port from " + first + " to " + (first + retries) + " can be served here: " + last,
            "set spark.zerohop.port to a free one or 0, or raise spark.port.maxRetries"));
  }
}
