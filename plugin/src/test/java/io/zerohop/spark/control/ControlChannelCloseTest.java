package io.zerohop.spark.control;

import static org.assertj.core.api.Assertions.assertThat;

import io.zerohop.device.Leaks;
import io.zerohop.device.exchange.ExchangeException.Reason;
import io.zerohop.shuffle.transport.ControlChannel.ControlLink;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.nio.ByteBuffer;
import java.time.Duration;
import java.util.concurrent.CompletableFuture;
import org.junit.jupiter.api.Test;

/** What is left of a channel that was closed while it was busy. */
class ControlChannelCloseTest extends ControlChannelFixture {
  @Test
  void closingTwiceWithOpenQuestionsLeavesNothing() throws Exception {
    final Leaks leaks = new Leaks();
    final SparkControlChannel channel = channels.open(service);
    final ControlLink link = connect(channel, channel);
    final CompletableFuture<ByteBuffer> open =
        link.ask(AskedService.question(AskedService.NEVER, ""));
    Channels.await("the question is there", () -> !service.asked.isEmpty());
    channel.close();
    channel.close();
    assertThat(reason(failure(open))).isEqualTo(Reason.CLOSED);
    assertThat(service.gone).hasSize(1);
    leaks.check();
  }

  @Test
  void closingWhileOthersConnectLeavesNothing() throws Exception {
    final Leaks leaks = new Leaks();
    final SparkControlChannel channel = channels.open(service);
    try (ServerSocket silent = new ServerSocket(0, 50, InetAddress.getByName(Channels.HOST))) {
      final CompletableFuture<?>[] attempts = new CompletableFuture<?>[20];
      for (int i = 0; i < attempts.length; i++) {
        attempts[i] =
            CompletableFuture.runAsync(
                () -> channel.connect(Channels.HOST, silent.getLocalPort(), Duration.ofHours(1)),
                task -> new Thread(task).start());
      }
      try (Socket connecting = silent.accept()) {
        channel.close();
        for (final CompletableFuture<?> attempt : attempts) {
          assertThat(reason(failure(attempt))).isEqualTo(Reason.CLOSED);
        }
        assertThat(connecting.isClosed()).isFalse();
      }
    }
    leaks.check();
  }
}
