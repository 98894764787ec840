package io.zerohop.spark.blocktransfer;

import io.zerohop.device.posix.Clock;
import java.io.IOException;
import java.net.ConnectException;
import java.net.InetSocketAddress;
import java.net.NoRouteToHostException;
import java.net.Proxy;
import java.net.Socket;
import java.net.SocketTimeoutException;
import java.time.Duration;
import java.util.concurrent.TimeUnit;

/**
 * Tests within a time limit whether a port is served. Spark's client would try for three times five
 * seconds before it gave up an executor that is dead.
 */
public final class PortProbe {
  private static final Duration PAUSE = Duration.ofMillis(500);

  private PortProbe() {}

  /** Connects and disconnects, within a limit. */
  @FunctionalInterface
  interface Attempt {
    void run(int limitMillis) throws IOException;
  }

  /**
   * False if the connection was refused, or if nothing answered, or there was no way to the host,
   * for all of the limit. The kernel accepts it, so a process that is only busy answers. What says
   * nothing of the port, such as a name that cannot be looked up now or an interrupt, counts as an
   * answer. To look the name up may take longer than the limit.
   *
   * @param clock by which it tries again
   */
  public static boolean answers(
      final String host, final int port, final Duration limit, final Clock clock) {
    final InetSocketAddress address = new InetSocketAddress(host, port);
    return answers(
        limitMillis -> {
          try (Socket socket = new Socket(Proxy.NO_PROXY)) {
            socket.connect(address, limitMillis);
          }
        },
        limit,
        clock);
  }

  static boolean answers(final Attempt attempt, final Duration limit, final Clock clock) {
    final long deadline = clock.in(limit);
    for (; ; ) {
      final long left = TimeUnit.NANOSECONDS.toMillis(clock.left(deadline));
      if (left <= 0) {
        return false;
      }
      try {
        attempt.run(Math.toIntExact(left)); // 0 would be no limit.
        return true;
      } catch (final NoRouteToHostException e) {
        if (!pause(left, clock)) {
          return true;
        }
      } catch (final ConnectException | SocketTimeoutException e) {
        return false;
      } catch (final IOException e) {
        return true;
      }
    }
  }

  /** False if interrupted. */
  private static boolean pause(final long mostMillis, final Clock clock) {
    try {
      clock.sleep(Duration.ofMillis(Math.min(mostMillis, PAUSE.toMillis())));
      return true;
    } catch (final InterruptedException e) {
      Thread.currentThread().interrupt();
      return false;
    }
  }
}
