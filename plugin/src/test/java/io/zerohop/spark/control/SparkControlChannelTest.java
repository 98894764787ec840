package io.zerohop.spark.control;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.catchThrowableOfType;

import io.zerohop.device.ZerohopException;
import io.zerohop.device.ZerohopException.Category;
import io.zerohop.device.exchange.ExchangeException;
import io.zerohop.device.exchange.ExchangeException.Reason;
import io.zerohop.shuffle.transport.ControlChannel.ControlLink;
import io.zerohop.spark.control.OpenChannels.ControlLimits;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.nio.ByteBuffer;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicReference;
import org.apache.spark.SparkConf;
import org.junit.jupiter.api.Test;

class SparkControlChannelTest extends ControlChannelFixture {
  @Test
  void bothEndsAskAndAnswer() throws Exception {
    final AskedService other = new AskedService();
    final SparkControlChannel a = channels.open(service);
    final SparkControlChannel b = channels.open(other);
    try (ControlLink toB = connect(a, b);
        ControlLink toA = connect(b, a)) {
      assertThat(answer(toB, AskedService.ECHO, "one")).isEqualTo("one");
      assertThat(answer(toA, AskedService.ELSEWHERE, "two")).isEqualTo("two");
    }
    assertThat(service.asked).hasSize(1);
    assertThat(other.asked).hasSize(1);
  }

  @Test
  void aQuestionGoesFromItsPositionToItsLimit() throws Exception {
    final SparkControlChannel channel = channels.open(service);
    try (ControlLink link = connect(channel, channel)) {
      final ByteBuffer question = AskedService.question(AskedService.ECHO, "inner and more");
      final ByteBuffer part = ByteBuffer.allocateDirect(40).put(9, question, 0, 6).position(9);
      final ByteBuffer answer = get(link.ask(part.limit(15).asReadOnlyBuffer()));
      assertThat(AskedService.text(answer)).isEqualTo("inner");
      assertThat(part.position()).isEqualTo(9);
    }
  }

  @Test
  void aLargeAnswerArrivesWhole() throws Exception {
    final int size = 8 << 20;
    final SparkControlChannel channel = channels.open(service);
    try (ControlLink link = connect(channel, channel)) {
      final ByteBuffer answer =
          get(link.ask(AskedService.question(AskedService.LARGE, String.valueOf(size))));
      assertThat(answer.remaining()).isEqualTo(size);
      for (int i = 0; i < size; i++) {
        if (answer.get(i) != AskedService.largeByte(i)) {
          throw new AssertionError("byte " + i + " differs");
        }
      }
    }
  }

  @Test
  void aLargeQuestionArrivesAndOneTooLargeIsNotSent() throws Exception {
    final SparkControlChannel channel = channels.open(service);
    try (ControlLink link = connect(channel, channel)) {
      final String most = "x".repeat(ControlLimits.DEFAULT.questionBytes() - 1);
      assertThat(answer(link, AskedService.ECHO, most)).isEqualTo(most);
      final CompletableFuture<ByteBuffer> more =
          link.ask(AskedService.question(AskedService.ECHO, most + "x"));
      assertThat(failure(more)).isExactlyInstanceOf(ZerohopException.class);
      assertThat(link.alive()).isTrue();
    }
  }

  /** An executor's own channel would send more. */
  @Test
  void aKeeperTakesQuestionsOf64KiBAndNoLargerOnes() throws Exception {
    final SparkControlChannel keeper =
        channels.open(Channels.conf(), 1, service, Channels.LIMIT, ControlLimits.KEEPER);
    final SparkControlChannel asking = channels.open(new AskedService());
    try (ControlLink link = connect(asking, keeper)) {
      final String most = "x".repeat((64 << 10) - 1);
      assertThat(answer(link, AskedService.ECHO, most)).isEqualTo(most);
      final CompletableFuture<ByteBuffer> more =
          link.ask(AskedService.question(AskedService.ECHO, most + "x"));
      assertThat(reason(failure(more))).isEqualTo(Reason.CLOSED);
      assertThat(service.asked).hasSize(1);
    }
    try (ControlLink next = connect(asking, keeper)) {
      assertThat(answer(next, AskedService.ECHO, "on")).isEqualTo("on");
    }
  }

  @Test
  void anAnswerTooLargeIsRefusedAndTheLinkStands() throws Exception {
    final SparkControlChannel channel = channels.open(service);
    try (ControlLink link = connect(channel, channel)) {
      final int size = ControlLimits.DEFAULT.answerBytes() + 1;
      final CompletableFuture<ByteBuffer> answer =
          link.ask(AskedService.question(AskedService.LARGE, String.valueOf(size)));
      assertThat(failure(answer)).hasMessageContaining(String.valueOf(size));
      assertThat(answer(link, AskedService.ECHO, "on")).isEqualTo("on");
    }
  }

  @Test
  void manyAskAtOnceOnManyLinks() throws Exception {
    final SparkControlChannel a = channels.open(service);
    final SparkControlChannel b = channels.open(new AskedService());
    final List<CompletableFuture<ByteBuffer>> answers = new ArrayList<>();
    final List<ControlLink> links = new ArrayList<>();
    for (int i = 0; i < 8; i++) {
      links.add(connect(b, a));
    }
    for (int i = 0; i < 2_000; i++) {
      final char kind = i % 50 == 0 ? AskedService.ELSEWHERE : AskedService.ECHO;
      answers.add(links.get(i % links.size()).ask(AskedService.question(kind, "question " + i)));
    }
    for (int i = 0; i < answers.size(); i++) {
      assertThat(AskedService.text(get(answers.get(i)))).isEqualTo("question " + i);
    }
    assertThat(service.asked.stream().distinct()).hasSize(links.size());
  }

  @Test
  void anotherSecretIsNotBelieved() {
    final SparkControlChannel mine = channels.open(service);
    final AskedService theirs = new AskedService();
    final SparkControlChannel other =
        channels.open(Channels.conf(), 2, theirs, Channels.LIMIT, ControlLimits.DEFAULT);
    assertThat(reason(() -> connect(other, mine))).isEqualTo(Reason.AUTHENTICATION);
    assertThat(reason(() -> connect(mine, other))).isEqualTo(Reason.AUTHENTICATION);
    assertThat(service.asked).isEmpty();
    assertThat(theirs.asked).isEmpty();
  }

  @Test
  void nobodyThereIsRefused() throws Exception {
    final int free;
    try (ServerSocket socket = new ServerSocket(0, 1, InetAddress.getByName(Channels.HOST))) {
      free = socket.getLocalPort();
    }
    final SparkControlChannel channel = channels.open(service);
    assertThat(reason(() -> channel.connect(Channels.HOST, free, Channels.LIMIT)))
        .isEqualTo(Reason.REFUSED);
  }

  @Test
  void oneThatSaysNothingTimesOut() throws Exception {
    final SparkControlChannel channel = channels.open(service);
    try (ServerSocket silent = new ServerSocket(0, 5, InetAddress.getByName(Channels.HOST))) {
      assertThat(
              reason(
                  () ->
                      channel.connect(
                          Channels.HOST, silent.getLocalPort(), Duration.ofMillis(100))))
          .isEqualTo(Reason.TIMEOUT);
    }
  }

  @Test
  void anInterruptEndsConnecting() throws Exception {
    final SparkControlChannel channel = channels.open(service);
    try (ServerSocket silent = new ServerSocket(0, 5, InetAddress.getByName(Channels.HOST))) {
      final AtomicReference<Throwable> failure = new AtomicReference<>();
      final AtomicReference<Boolean> flag = new AtomicReference<>();
      final Thread thread =
          new Thread(
              () -> {
                failure.set(
                    catchThrowableOfType(
                        ExchangeException.class,
                        () ->
                            channel.connect(
                                Channels.HOST, silent.getLocalPort(), Duration.ofHours(1))));
                flag.set(Thread.currentThread().isInterrupted());
              });
      thread.start();
      try (Socket accepted = silent.accept()) {
        thread.interrupt();
        thread.join(Channels.LIMIT.toMillis());
        assertThat(accepted.isClosed()).isFalse();
      }
      assertThat(thread.isAlive()).isFalse();
      assertThat(failure.get()).isNotNull();
      assertThat(flag).hasValue(true);
    }
  }

  @Test
  void aMissingAnswerTimesOutAndTheLinkStands() throws Exception {
    final SparkControlChannel answering = channels.open(service);
    final SparkControlChannel asking =
        channels.open(
            Channels.conf(), 1, new AskedService(), Duration.ofMillis(300), ControlLimits.DEFAULT);
    try (ControlLink link = connect(asking, answering)) {
      final CompletableFuture<ByteBuffer> never =
          link.ask(AskedService.question(AskedService.NEVER, ""));
      assertThat(reason(failure(never))).isEqualTo(Reason.TIMEOUT);
      assertThat(link.alive()).isTrue();
    }
  }

  @Test
  void refusalsComeWithTheirWords() throws Exception {
    final SparkControlChannel channel = channels.open(service);
    try (ControlLink link = connect(channel, channel)) {
      final Throwable refusal = failure(link.ask(AskedService.question(AskedService.REFUSE, "ü:")));
      assertThat(refusal)
          .isExactlyInstanceOf(ZerohopException.class)
          .hasMessage("not ü: by me")
          .extracting(e -> ((ZerohopException) e).category())
          .isEqualTo(Category.RETRY);
      assertThat(failure(link.ask(AskedService.question(AskedService.BREAK, ""))))
          .isExactlyInstanceOf(ZerohopException.class)
          .hasMessageContaining("IllegalArgumentException");
      final Throwable lost = failure(link.ask(AskedService.question(AskedService.FATAL, "")));
      assertThat(((ZerohopException) lost).category()).isEqualTo(Category.FALLBACK);
      assertThat(answer(link, AskedService.ECHO, "on")).isEqualTo("on");
    }
  }

  @Test
  void openQuestionsEndWithTheOther() throws Exception {
    final SparkControlChannel answering = channels.open(service);
    final SparkControlChannel asking = channels.open(new AskedService());
    final ControlLink link = connect(asking, answering);
    final AtomicInteger told = new AtomicInteger();
    link.onClosed(told::incrementAndGet);
    final CompletableFuture<ByteBuffer> open =
        link.ask(AskedService.question(AskedService.NEVER, ""));
    Channels.await("the question is there", () -> !service.asked.isEmpty());
    answering.close();
    assertThat(reason(failure(open))).isEqualTo(Reason.CLOSED);
    Channels.await("the link knows", () -> !link.alive() && told.get() == 1);
    assertThat(service.gone).containsExactlyElementsOf(service.asked);
    link.onClosed(told::incrementAndGet);
    assertThat(told).hasValue(2);
    final CompletableFuture<ByteBuffer> late =
        link.ask(AskedService.question(AskedService.ECHO, ""));
    assertThat(reason(failure(late))).isEqualTo(Reason.CLOSED);
  }

  @Test
  void openQuestionsEndWithTheOwnChannel() throws Exception {
    final SparkControlChannel answering = channels.open(service);
    final SparkControlChannel asking = channels.open(new AskedService());
    final ControlLink link = connect(asking, answering);
    final CompletableFuture<ByteBuffer> open =
        link.ask(AskedService.question(AskedService.NEVER, ""));
    asking.close();
    assertThat(reason(failure(open))).isEqualTo(Reason.CLOSED);
    assertThat(link.alive()).isFalse();
    assertThat(reason(() -> connect(asking, answering))).isEqualTo(Reason.CLOSED);
  }

  @Test
  void eachLinkThatAskedIsGoneOnce() throws Exception {
    final SparkControlChannel answering = channels.open(service);
    final SparkControlChannel asking = channels.open(new AskedService());
    final ControlLink first = connect(asking, answering);
    final ControlLink second = connect(asking, answering);
    connect(asking, answering);
    answer(first, AskedService.ECHO, "a");
    answer(first, AskedService.ECHO, "b");
    answer(second, AskedService.ECHO, "c");
    first.close();
    first.close();
    Channels.await("the first is gone", () -> service.gone.size() == 1);
    assertThat(answer(second, AskedService.ECHO, "d")).isEqualTo("d");
    answering.close();
    asking.close();
    assertThat(service.gone).hasSize(2).doesNotHaveDuplicates();
    assertThat(service.asked).containsAll(service.gone);
  }

  @Test
  void aPortThatIsTakenIsPassedOver() throws Exception {
    final SparkControlChannel first = channels.open(service);
    final SparkConf conf = Channels.conf().set("spark.zerohop.port", "" + first.port());
    final SparkControlChannel second =
        channels.open(conf, 1, service, Channels.LIMIT, ControlLimits.DEFAULT);
    assertThat(second.port()).isNotEqualTo(first.port());
    conf.set("spark.port.maxRetries", "0");
    assertThatThrownBy(() -> channels.open(conf, 1, service, Channels.LIMIT, ControlLimits.DEFAULT))
        .isInstanceOf(IllegalStateException.class)
        .hasMessageContaining("spark.zerohop.port")
        .hasMessageContaining(String.valueOf(first.port()));
  }
}
