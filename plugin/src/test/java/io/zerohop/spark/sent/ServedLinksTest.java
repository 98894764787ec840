package io.zerohop.spark.sent;

import static org.assertj.core.api.Assertions.assertThat;

import io.netty.channel.embedded.EmbeddedChannel;
import io.zerohop.shuffle.transport.ControlChannel.ControlService;
import io.zerohop.shuffle.transport.remote.Wire.Questions;
import io.zerohop.spark.sent.Connections.Connection;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.Consumer;
import org.apache.spark.network.client.TransportClient;
import org.apache.spark.network.client.TransportResponseHandler;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** When an owner connects to a reader. */
class ServedLinksTest {
  private static final String READER = "reader";
  private static final long LINK = 3;
  private static final long TRANSFER = 5;

  private final List<EmbeddedChannel> channels = new ArrayList<>();
  private final List<Long> asked = new ArrayList<>();
  private final List<Long> disconnected = new ArrayList<>();
  private Runnable meanwhile = () -> {};
  private Runnable connecting = () -> {};
  private boolean refuses;

  private final ServedLinks links =
      new ServedLinks(
          new ControlService() {
            @Override
            public void asked(
                final long link, final ByteBuffer question, final Consumer<ByteBuffer> answer) {
              meanwhile.run();
              asked.add(link);
            }

            @Override
            public void disconnected(final long link) {
              disconnected.add(link);
            }
          },
          this::connect,
          Runnable::run,
          Runnable::run);

  private Connection connect(final String executorId) {
    connecting.run();
    final EmbeddedChannel channel = new EmbeddedChannel();
    channels.add(channel);
    if (refuses) {
      throw new IllegalStateException("connection refused");
    }
    return new Connection(
        new TransportClient(channel, new TransportResponseHandler(channel)),
        new byte[0],
        new AtomicInteger());
  }

  @AfterEach
  void close() {
    links.close();
  }

  private void ask(final int question) {
    links.asked(READER, LINK, question, Questions.ping());
  }

  @Test
  void aReaderThatHasLeftIsNotConnectedUntilItAsksAgain() {
    ask(0);
    links.ended(READER, LINK);
    links.lost(READER, TRANSFER);
    assertThat(channels).hasSize(1);
    links.asked(READER, LINK + 1, 0, Questions.ping());
    links.lost(READER, TRANSFER);
    assertThat(channels).hasSize(2);
  }

  @Test
  void oneThatCannotBeReachedIsTriedOnceUntilItAsksAgain() {
    ask(0);
    refuses = true;
    channels.get(0).close();
    links.lost(READER, TRANSFER);
    links.lost(READER, TRANSFER + 1);
    assertThat(channels).hasSize(2);
    refuses = false;
    ask(1);
    assertThat(channels).hasSize(3);
  }

  @Test
  void oneThatHasAskedIsConnectedAnewWhenItsConnectionBreaks() {
    ask(0);
    channels.get(0).close();
    assertThat(channels).hasSize(2);
    channels.get(1).close(); // It has not asked since.
    assertThat(channels).hasSize(2);
  }

  /** There are few threads that connect, and others' readers need them. */
  @Test
  @Timeout(60)
  void whatIsToBeSaidToAReaderThatIsBeingConnectedHoldsNoThread() throws Exception {
    final CountDownLatch begun = new CountDownLatch(1);
    final CountDownLatch goesOn = new CountDownLatch(1);
    connecting =
        () -> {
          begun.countDown();
          try {
            goesOn.await(50, TimeUnit.SECONDS);
          } catch (final InterruptedException e) {
            throw new IllegalStateException(e);
          }
        };
    final CompletableFuture<Void> first =
        CompletableFuture.runAsync(() -> links.lost(READER, TRANSFER));
    try {
      assertThat(begun.await(30, TimeUnit.SECONDS)).isTrue();
      CompletableFuture.runAsync(
              () -> {
                links.lost(READER, TRANSFER + 1);
                ask(0);
              })
          .get(30, TimeUnit.SECONDS);
      assertThat(first).isNotDone();
    } finally {
      goesOn.countDown();
    }
    first.get(30, TimeUnit.SECONDS);
    assertThat(channels).as("connected once, for all").hasSize(1);
    assertThat(channels.get(0).outboundMessages()).hasSize(2);
    assertThat(asked).hasSize(1);
  }

  /** As after a pause, when several threads read what has come meanwhile. */
  @Test
  void aQuestionThatTheEndOfItsLinkHasOvertakenIsNotAnswered() {
    ask(0);
    links.ended(READER, LINK);
    ask(1);
    assertThat(asked).hasSize(1);
    assertThat(disconnected).isEqualTo(asked);
    links.ended(READER, LINK + 1);
    links.asked(READER, LINK + 1, 0, Questions.ping());
    assertThat(asked).hasSize(1);
    assertThat(channels).hasSize(1);
  }

  @Test
  void aLinkThatEndsWhileItIsAskedHoldsNothing() {
    meanwhile = () -> links.ended(READER, LINK);
    ask(0);
    assertThat(asked).hasSize(1);
    assertThat(disconnected).endsWith(asked.get(0));
    assertThat(disconnected).hasSize(2); // The first one came before the question.
  }
}
