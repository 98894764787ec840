package io.zerohop.spark.sent;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.netty.channel.embedded.EmbeddedChannel;
import io.zerohop.device.TestClock;
import io.zerohop.shuffle.conf.Config;
import io.zerohop.shuffle.transport.remote.Wire.Questions;
import io.zerohop.spark.sent.Connections.Connection;
import io.zerohop.spark.sent.Connections.PortLink;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.spark.network.client.TransportClient;
import org.apache.spark.network.client.TransportResponseHandler;
import org.junit.jupiter.api.Test;

class ConnectionTest {
  private static final UploadId WORD = UploadId.word(UploadId.ANSWER, 1, 2, 4);

  private final EmbeddedChannel channel = new EmbeddedChannel();
  private final TransportResponseHandler responses = new TransportResponseHandler(channel);
  private final AtomicInteger underWay = new AtomicInteger();
  private final Connection connection =
      new Connection(new TransportClient(channel, responses), new byte[0], underWay);

  /** Spark says of uploads that they failed before Netty has closed the channel. */
  @Test
  void oneThatFailsAnUploadIsDeadBeforeThatIsTold() {
    final List<Boolean> alive = new ArrayList<>();
    connection.upload(WORD, ByteBuffer.allocate(4), (reply, why) -> alive.add(connection.alive()));
    assertThat(connection.alive()).isTrue();
    responses.exceptionCaught(new IOException("Connection reset by peer"));
    assertThat(alive).containsExactly(false);
    assertThat(channel.isOpen()).isFalse();
    assertThat(underWay).hasValue(0);
  }

  /** The owner answers that question when it is its turn. */
  @Test
  void aQuestionHasTheTimeThatItsTurnTakes() {
    final TestClock clock = TestClock.standing();
    final Duration usual = Duration.ofSeconds(10);
    final PortLink link =
        new PortLink(
            7,
            "reader",
            "owner",
            connection,
            Config.defaults().with("device.timeout", usual),
            clock);
    final CompletableFuture<ByteBuffer> ping = link.ask(Questions.ping());
    final CompletableFuture<ByteBuffer> send =
        link.ask(Questions.send(1, 2), usual.multipliedBy(3));
    clock.advance(usual);
    link.checkOverdue();
    assertThat(ping).isCompletedExceptionally();
    assertThat(send).isNotDone();
    clock.advance(usual.multipliedBy(2));
    link.checkOverdue();
    assertThatThrownBy(send::join).hasMessageContaining("within 30000 ms");
  }
}
