package io.zerohop.spark.staged;

import static org.assertj.core.api.Assertions.assertThat;

import io.zerohop.device.TestClock;
import io.zerohop.device.posix.Clock;
import io.zerohop.spark.staged.BlockTransferTransport.PortProbe;
import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.NoRouteToHostException;
import java.net.ServerSocket;
import java.net.Socket;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Whether a port is served. */
@Timeout(30)
@SuppressWarnings("try") // A flight is there to be closed.
class PortProbeTest {
  private static final String HOST = InetAddress.getLoopbackAddress().getHostAddress();
  private static final Duration LIMIT = Duration.ofMillis(500);

  @Test
  void aServedPortAnswers() throws IOException {
    try (ServerSocket server = new ServerSocket(0)) {
      assertThat(PortProbe.answers(HOST, server.getLocalPort(), LIMIT, Clock.system())).isTrue();
    }
  }

  @Test
  void aPortThatNobodyServesDoesNot() throws IOException {
    final int port;
    try (ServerSocket server = new ServerSocket(0)) {
      port = server.getLocalPort();
    }
    assertThat(PortProbe.answers(HOST, port, LIMIT, Clock.system())).isFalse();
  }

  /** The kernel drops what a full backlog has no room for, as a host does that is switched off. */
  @Test
  void silenceIsNoAnswer() throws IOException {
    final List<Socket> waiting = new ArrayList<>();
    try (ServerSocket server = new ServerSocket(0, 1, InetAddress.getLoopbackAddress())) {
      try {
        while (waiting.size() < 100 && queue(server, waiting)) {
          assertThat(waiting).hasSizeLessThan(100);
        }
        assertThat(PortProbe.answers(HOST, server.getLocalPort(), LIMIT, Clock.system())).isFalse();
      } finally {
        for (final Socket socket : waiting) {
          socket.close();
        }
      }
    }
  }

  /** Whether one more connection found room. */
  private static boolean queue(final ServerSocket server, final List<Socket> waiting) {
    final Socket socket = new Socket();
    waiting.add(socket);
    try {
      socket.connect(new InetSocketAddress(HOST, server.getLocalPort()), 200);
      return true;
    } catch (final IOException e) {
      return false;
    }
  }

  @Test
  void noRouteIsTriedAgainUntilTheLimit() {
    final AtomicInteger attempts = new AtomicInteger();
    final PortProbe.Attempt never =
        limitMillis -> {
          attempts.incrementAndGet();
          throw new NoRouteToHostException("a test wants it");
        };
    final TestClock clock = TestClock.standing();
    try (TestClock.Flight flight = clock.fly()) {
      assertThat(PortProbe.answers(never, Duration.ofMinutes(1), clock)).isFalse();
    }
    assertThat(attempts).hasValueGreaterThan(1);
  }

  @Test
  void aRouteMayComeBack() {
    final AtomicInteger attempts = new AtomicInteger();
    final PortProbe.Attempt second =
        limitMillis -> {
          if (attempts.incrementAndGet() == 1) {
            throw new NoRouteToHostException("a test wants it");
          }
        };
    final TestClock clock = TestClock.standing();
    try (TestClock.Flight flight = clock.fly()) {
      assertThat(PortProbe.answers(second, Duration.ofHours(1), clock)).isTrue();
    }
  }

  @Test
  void anInterruptSaysNothing() {
    final PortProbe.Attempt never =
        limitMillis -> {
          throw new NoRouteToHostException("a test wants it");
        };
    Thread.currentThread().interrupt();
    assertThat(PortProbe.answers(never, Duration.ofSeconds(10), Clock.system())).isTrue();
    assertThat(Thread.interrupted()).isTrue();
  }

  @Test
  void aNameThatIsNotKnownSaysNothing() {
    assertThat(PortProbe.answers("no-such-host.invalid", 1, LIMIT, Clock.system())).isTrue();
  }
}
