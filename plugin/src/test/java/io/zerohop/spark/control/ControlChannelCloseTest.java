package io.zerohop.spark.control;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.zerohop.device.Leaks;
import io.zerohop.device.exchange.ExchangeException;
import io.zerohop.shuffle.transport.ControlLink;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.nio.ByteBuffer;
import java.time.Duration;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** What is left of a channel that was closed while it was busy. */
@Timeout(60)
class ControlChannelCloseTest {
  private final AskedService service = new AskedService();
  private final Channels channels = new Channels();

  @Test
  void closingTwiceWithOpenQuestionsLeavesNothing() throws Exception {
    final Leaks leaks = new Leaks();
    final SparkControlChannel channel = channels.open(service);
    final ControlLink link = channel.connect(Channels.HOST, channel.port(), Channels.LIMIT);
    final CompletableFuture<ByteBuffer> open =
        link.ask(AskedService.question(AskedService.NEVER, ""));
    Channels.await("the question is there", () -> !service.asked.isEmpty());
    channel.close();
    channel.close();
    assertThatThrownBy(() -> open.get(Channels.LIMIT.toMillis(), TimeUnit.MILLISECONDS))
        .isInstanceOf(ExecutionException.class)
        .cause()
        .isInstanceOf(ExchangeException.class);
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
          assertThatThrownBy(() -> attempt.get(Channels.LIMIT.toMillis(), TimeUnit.MILLISECONDS))
              .isInstanceOf(ExecutionException.class)
              .cause()
              .isInstanceOfSatisfying(
                  ExchangeException.class,
                  e -> assertThat(e.reason()).isEqualTo(ExchangeException.Reason.CLOSED));
        }
        assertThat(connecting.isClosed()).isFalse();
      }
    }
    leaks.check();
  }
}
