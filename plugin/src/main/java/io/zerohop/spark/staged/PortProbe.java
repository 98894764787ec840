package io.zerohop.spark.staged;

import java.io.IOException;
import java.net.ConnectException;
import java.net.InetSocketAddress;
import java.net.NoRouteToHostException;
import java.net.Proxy;
import java.net.Socket;
import java.net.SocketTimeoutException;
import java.time.Duration;

/**
 * Tells within a limit whether a port is served. Spark's client would try for three times five
 * seconds before it gave up an executor that is dead.
 */
final class PortProbe {
  private PortProbe() {}

  /**
   * False if the connection was refused, or nothing answered within the limit. The kernel accepts
   * it, so a process that is only busy answers. What says nothing of the port, such as a name that
   * cannot be looked up now, counts as an answer.
   */
  static boolean answers(final String host, final int port, final Duration limit) {
    try (Socket socket = new Socket(Proxy.NO_PROXY)) {
      socket.connect(new InetSocketAddress(host, port), Math.toIntExact(limit.toMillis()));
      return true;
    } catch (final ConnectException | NoRouteToHostException | SocketTimeoutException e) {
      return false;
    } catch (final IOException e) {
      return true;
    }
  }
}
