package io.zerohop.spark.sent;

import static org.assertj.core.api.Assertions.assertThat;

import io.netty.channel.embedded.EmbeddedChannel;
import io.zerohop.device.TestClock;
import io.zerohop.shuffle.transport.ControlChannel.ControlService;
import io.zerohop.shuffle.transport.remote.Wire.Questions;
import io.zerohop.spark.sent.Connections.Connection;
import io.zerohop.spark.sent.PortCarrier.KnownNeighbours.TooSoonException;
import io.zerohop.spark.sent.Uploads.Arriving;
import io.zerohop.spark.sent.Uploads.ArrivingWord;
import io.zerohop.spark.sent.Uploads.Reply;
import java.nio.ByteBuffer;
import java.time.Duration;
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
  private static final Duration PAUSE = Duration.ofSeconds(1);

  private final TestClock clock = TestClock.standing();
  private final List<EmbeddedChannel> channels = new ArrayList<>();
  private final List<TransportResponseHandler> responses = new ArrayList<>();
  private final List<Long> asked = new ArrayList<>();
  private final List<Consumer<ByteBuffer>> answers = new ArrayList<>();
  private final List<Long> disconnected = new ArrayList<>();
  private Runnable meanwhile = () -> {};
  private Runnable whenDisconnected = () -> {};
  private Runnable connecting = () -> {};
  private boolean refuses;
  private boolean tooSoon;

  /** So many of the next connections break at once. */
  private int breaking;

  private final ServedLinks links =
      new ServedLinks(
          new ControlService() {
            @Override
            public void asked(
                final long link, final ByteBuffer question, final Consumer<ByteBuffer> answer) {
              meanwhile.run();
              asked.add(link);
              answers.add(answer);
            }

            @Override
            public void disconnected(final long link) {
              disconnected.add(link);
              whenDisconnected.run();
            }
          },
          this::connect,
          Runnable::run,
          Runnable::run,
          clock);

  private Connection connect(final String executorId) {
    if (tooSoon) {
      throw new TooSoonException(executorId, clock.in(PAUSE));
    }
    connecting.run();
    final EmbeddedChannel channel = new EmbeddedChannel();
    channels.add(channel);
    if (refuses) {
      throw new IllegalStateException("connection refused");
    }
    if (breaking-- > 0) {
      channel.close();
    }
    final TransportResponseHandler handler = new TransportResponseHandler(channel);
    responses.add(handler);
    return new Connection(new TransportClient(channel, handler), new byte[0], new AtomicInteger());
  }

  @AfterEach
  void close() {
    links.close();
  }

  private void ask(final int question) {
    links.asked(READER, LINK, question, Questions.ping());
  }

  /** By an upload, as from the network. */
  private void upload(final long link, final int question) {
    final ByteBuffer body = ArrivingWord.body(READER, Questions.ping());
    final Arriving word =
        links.arriving(UploadId.word(UploadId.QUESTION, link, question, body.remaining()));
    assertThat(word).isNotNull();
    word.bytes(body);
    assertThat(word.complete()).isEqualTo(Reply.TAKEN);
  }

  private int carried(final int channel) {
    return channels.get(channel).outboundMessages().size();
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

  /** As when a reader ends a link and opens the next one, which different threads read. */
  @Test
  void aLinkThatComesWhileTheLastOneEndsHasAWayBack() {
    ask(0);
    whenDisconnected =
        () -> {
          whenDisconnected = () -> {};
          links.asked(READER, LINK + 1, 0, Questions.ping());
        };
    links.ended(READER, LINK);
    assertThat(asked).hasSize(2);
    assertThat(disconnected).containsExactly(asked.get(0));
    assertThat(channels).hasSize(2);
    assertThat(channels.get(0).isOpen()).isFalse();
    assertThat(channels.get(1).isOpen()).isTrue();
    links.lost(READER, TRANSFER);
    assertThat(carried(1)).as("it is told what is lost").isEqualTo(1);
  }

  @Test
  void aQuestionOutlivesAConnectionThatBreaksAtOnce() {
    breaking = 1;
    ask(0);
    assertThat(asked).hasSize(1);
    assertThat(channels).hasSize(2);
  }

  @Test
  void whoBreaksEachConnectionAtOnceIsNotConnectedWithoutEnd() {
    breaking = Integer.MAX_VALUE;
    ask(0);
    assertThat(asked).isEmpty();
    assertThat(channels).hasSize(3);
  }

  /** A connection that firewalls have forgotten seems to be alive, and carries nothing. */
  @Test
  void aReaderThatComesByAnotherLinkHasANewWayBack() {
    upload(LINK, 0);
    clock.advance(PAUSE);
    upload(LINK + 1, 0);
    assertThat(channels).hasSize(2);
    assertThat(channels.get(0).isOpen()).isFalse();
    answers.get(1).accept(ByteBuffer.allocate(1));
    assertThat(carried(0)).isZero();
    assertThat(carried(1)).isEqualTo(1);
  }

  @Test
  void linksThatAreOpenAtTheSameTimeShareTheNewWayBack() {
    upload(LINK, 0);
    clock.advance(PAUSE);
    upload(LINK + 1, 0);
    upload(LINK, 1);
    upload(LINK + 1, 1);
    assertThat(asked).hasSize(4);
    assertThat(asked.get(2)).isEqualTo(asked.get(0));
    assertThat(asked.get(3)).isEqualTo(asked.get(1));
    assertThat(disconnected).isEmpty();
    answers.forEach(answer -> answer.accept(ByteBuffer.allocate(1)));
    assertThat(channels).hasSize(2);
    assertThat(carried(1)).isEqualTo(4);
    links.ended(READER, LINK);
    assertThat(channels.get(1).isOpen()).isTrue();
    links.ended(READER, LINK + 1);
    assertThat(channels.get(1).isOpen()).isFalse();
  }

  @Test
  void aLinkOutlivesANewWayBackThoughNothingWasAskedByTheLastOne() {
    upload(LINK, 0);
    channels.get(0).close();
    clock.advance(PAUSE);
    upload(LINK + 1, 0);
    assertThat(channels).hasSize(3);
    assertThat(disconnected).isEmpty();
    upload(LINK, 1);
    assertThat(asked).endsWith(asked.get(0));
  }

  /** An answer that the closed connection has not carried goes by the new one. */
  @Test
  void answersUnderWayAreSaidAgainByTheNewWayBack() {
    upload(LINK, 0);
    answers.get(0).accept(ByteBuffer.allocate(1));
    clock.advance(PAUSE);
    upload(LINK + 1, 0);
    responses.get(0).channelInactive();
    assertThat(carried(1)).isEqualTo(1);
  }

  /** Nobody has it made at will: not by introductions in the name of others either. */
  @Test
  void aWayBackThatWasJustMadeIsNotDoubted() {
    upload(LINK, 0);
    clock.advance(PAUSE);
    upload(LINK + 1, 0);
    upload(LINK + 2, 0);
    assertThat(channels).hasSize(2);
    assertThat(channels.get(1).isOpen()).isTrue();
  }

  /** What was made for a word to a reader without links may be forgotten as well. */
  @Test
  void aWayBackWithoutLinksIsMadeAnewForAReaderThatComes() {
    links.lost(READER, TRANSFER);
    clock.advance(PAUSE);
    upload(LINK, 0);
    assertThat(channels).hasSize(2);
    assertThat(channels.get(0).isOpen()).isFalse();
  }

  /** Somebody's invented name has just made the driver list all executors, and one is new. */
  @Test
  void aQuestionOfWhoIsNotKnownYetIsAnsweredLater() {
    tooSoon = true;
    upload(LINK, 0);
    tooSoon = false;
    links.maintain();
    assertThat(asked).isEmpty();
    clock.advance(PAUSE);
    links.maintain();
    assertThat(asked).hasSize(1);
    links.maintain();
    assertThat(asked).as("once").hasSize(1);
  }

  @Test
  void aQuestionIsNotPostponedTwice() {
    tooSoon = true;
    upload(LINK, 0);
    clock.advance(PAUSE);
    links.maintain();
    tooSoon = false;
    clock.advance(PAUSE);
    links.maintain();
    assertThat(asked).isEmpty();
  }

  @Test
  void aPostponedQuestionOfALinkThatHasEndedIsNotAnswered() {
    tooSoon = true;
    upload(LINK, 0);
    links.ended(READER, LINK);
    tooSoon = false;
    clock.advance(PAUSE);
    links.maintain();
    assertThat(channels).isEmpty();
  }
}
