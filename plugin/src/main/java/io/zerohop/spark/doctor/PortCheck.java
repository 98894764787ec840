package io.zerohop.spark.doctor;

import io.zerohop.device.Message;
import io.zerohop.shuffle.conf.Config;
import io.zerohop.spark.conf.NetworkTrust;
import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.Socket;
import java.util.function.UnaryOperator;

/**
 * Whether the port for other nodes, or one behind it, can be served on this host. It is bound and
 * not listened at, so nobody can connect to it meanwhile.
 */
final class PortCheck implements Check {
  private static final String DEFAULT_RETRIES = "16";
  private static final int MAX_PORT = 65_535;

  private final int first;
  private final int retries;
  private final Message noPort;

  /**
   * @param settings the value of a key; null if it is not set
   */
  PortCheck(final UnaryOperator<String> settings) {
    first = Config.read(settings).port();
    final String set = settings.apply("spark.port.maxRetries");
    retries = Integer.parseInt(set == null ? DEFAULT_RETRIES : set.trim());
    noPort = NetworkTrust.obstacle(settings);
  }

  @Override
  public void run(final Notes notes) {
    if (noPort != null) {
      notes.add(
          Finding.skip(
              Item.PORT, Message.of("executors open no port for other nodes").because(noPort)));
      return;
    }
    if (first == 0) {
      notes.add(Finding.ok(Item.PORT, "spark.zerohop.port is 0: any free port is taken"));
      return;
    }
    IOException last = null;
    for (int port = first; port <= Math.min(MAX_PORT, first + retries); port++) {
      try (Socket socket = new Socket()) {
        socket.setReuseAddress(true); // As whoever listens there does it.
        socket.bind(new InetSocketAddress(InetAddress.getLocalHost(), port));
        notes.add(Finding.ok(Item.PORT, "port " + port + " is free on this host"));
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
