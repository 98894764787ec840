package io.zerohop.spark.sent;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.netty.channel.embedded.EmbeddedChannel;
import io.zerohop.device.exchange.ExchangeException;
import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.net.SocketTimeoutException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.apache.spark.SecurityManager;
import org.apache.spark.SparkConf;
import org.apache.spark.network.client.TransportClient;
import org.apache.spark.network.client.TransportResponseHandler;
import org.apache.spark.network.util.TransportConf;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import scala.Option;

@Timeout(120)
@ExtendWith(QuietNetwork.class)
class LateConnectionsTest {
  private static final String MODULE = "shuffle";
  private static final Duration LIMIT = Duration.ofSeconds(5);
  private static final int PATIENCE_MILLIS = 40_000;
  private static final int MAX_QUEUED = 100;

  private final SparkConf conf = new SparkConf(false).set("spark.app.id", "app-late");
  private final SecurityManager security = new SecurityManager(conf, Option.empty(), null);

  private TransportConf givingUp(final Duration limit) {
    return LateConnections.givingUp(MODULE, conf, security, limit);
  }

  @ParameterizedTest
  @CsvSource({"5000, 6000", "1, 1000", "2001, 3000", "99999999999, 120000"})
  void sparkGivesUpSoonAfterTheCaller(final long limit, final int spark) {
    final TransportConf transport = givingUp(Duration.ofMillis(limit));
    assertThat(transport.connectionCreationTimeoutMs()).isEqualTo(spark);
    assertThat(transport.connectionTimeoutMs()).as("of idle ones").isEqualTo(120_000);
  }

  @ParameterizedTest
  @CsvSource({"3s, 3000", "30s, 6000", "0s, 6000"})
  void aShorterLimitOfSparksIsKept(final String sparks, final int expected) {
    conf.set("spark.shuffle.io.connectionCreationTimeout", sparks);
    assertThat(givingUp(LIMIT).connectionCreationTimeoutMs()).isEqualTo(expected);
  }

  @Test
  void oneThatNobodyHasClaimedIsClosed() {
    final EmbeddedChannel channel = new EmbeddedChannel();
    new LateConnections(LIMIT).channelActive(client(channel));
    pass(channel, LIMIT);
    assertThat(channel.isOpen()).as("it may still be claimed").isTrue();
    pass(channel, LIMIT);
    assertThat(channel.isOpen()).isFalse();
  }

  @Test
  void oneThatSomebodyHasClaimedIsHis() {
    final EmbeddedChannel channel = new EmbeddedChannel();
    final TransportClient client = client(channel);
    new LateConnections(LIMIT).channelActive(client);
    LateConnections.claim(client);
    pass(channel, LIMIT.multipliedBy(2));
    assertThat(channel.isOpen()).isTrue();
  }

  private static TransportClient client(final EmbeddedChannel channel) {
    channel.freezeTime();
    return new TransportClient(channel, new TransportResponseHandler(channel));
  }

  private static void pass(final EmbeddedChannel channel, final Duration time) {
    channel.advanceTimeBy(time.toMillis(), TimeUnit.MILLISECONDS);
    channel.runScheduledPendingTasks();
  }

  /** A full backlog holds one up, as a slow network does, until its first packet is repeated. */
  @Test
  void oneThatStandsWhenTheCallerHasGivenUpIsClosed() throws IOException {
    final Connections connections = new Connections(conf, security, Duration.ofSeconds(3));
    final List<Socket> queued = new ArrayList<>();
    final List<Socket> accepted = new ArrayList<>();
    try (ServerSocket server = new ServerSocket(0, 1, InetAddress.getByName(BlockPort.HOST))) {
      server.setSoTimeout(PATIENCE_MILLIS / 4);
      while (queue(server, queued)) {
        assertThat(queued).hasSizeLessThan(MAX_QUEUED);
      }
      assertThatThrownBy(
              () ->
                  connections.connect(
                      BlockPort.HOST, server.getLocalPort(), Duration.ofMillis(500)))
          .isInstanceOf(ExchangeException.class);
      closeAll(queued);
      while (accepted.size() < queued.size() && accept(server, accepted)) {
        assertThat(accepted.get(accepted.size() - 1).getInputStream().read())
            .as("its other end is closed")
            .isNegative();
      }
    } finally {
      closeAll(queued);
      closeAll(accepted);
      connections.end();
    }
  }

  /** Whether one more found room; the last one in the list did not. */
  private static boolean queue(final ServerSocket server, final List<Socket> queued) {
    final Socket socket = new Socket();
    queued.add(socket);
    try {
      socket.connect(new InetSocketAddress(BlockPort.HOST, server.getLocalPort()), 200);
      return true;
    } catch (final IOException e) {
      return false;
    }
  }

  /** Whether one more has come. */
  private static boolean accept(final ServerSocket server, final List<Socket> accepted)
      throws IOException {
    try {
      final Socket socket = server.accept();
      socket.setSoTimeout(PATIENCE_MILLIS);
      accepted.add(socket);
      return true;
    } catch (final SocketTimeoutException e) {
      return false; // Netty has given it up.
    }
  }

  private static void closeAll(final List<Socket> sockets) throws IOException {
    for (final Socket socket : sockets) {
      socket.close();
    }
  }
}
