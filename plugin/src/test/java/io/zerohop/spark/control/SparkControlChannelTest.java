package io.zerohop.spark.control;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.catchThrowableOfType;

import io.zerohop.device.Leaks;
import io.zerohop.device.ZerohopException;
import io.zerohop.device.ZerohopException.Category;
import io.zerohop.device.exchange.ExchangeException;
import io.zerohop.device.exchange.ExchangeException.Reason;
import io.zerohop.shuffle.transport.ControlLink;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.nio.ByteBuffer;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicReference;
import org.apache.spark.SparkConf;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

@Timeout(60)
class SparkControlChannelTest {
  private static final String PASSWORD = "only-a-test";

  private static Leaks leaks;

  private final AskedService service = new AskedService();
  private final Channels channels = new Channels();

  @BeforeAll
  static void takeStock() {
    leaks = new Leaks();
  }

  @AfterAll
  static void nothingIsLeft() {
    leaks.check();
  }

  @AfterEach
  void close() {
    channels.close();
  }

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
          .hasMessage("not ü:\nby me")
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

  @Test
  void questionsGoUnderTlsWhereSparksDo(@TempDir final Path folder) throws Exception {
    final Path store = folder.resolve("keys.p12");
    makeKeys(store);
    final SparkConf conf =
        Channels.conf()
            .set("spark.ssl.rpc.enabled", "true")
            .set("spark.ssl.rpc.protocol", "TLSv1.3")
            .set("spark.ssl.rpc.keyStore", store.toString())
            .set("spark.ssl.rpc.keyStorePassword", PASSWORD)
            .set("spark.ssl.rpc.keyPassword", PASSWORD)
            .set("spark.ssl.rpc.trustStore", store.toString())
            .set("spark.ssl.rpc.trustStorePassword", PASSWORD);
    final SparkControlChannel channel =
        channels.open(conf, 1, service, Channels.LIMIT, ControlLimits.DEFAULT);
    try (ControlLink link = connect(channel, channel)) {
      assertThat(answer(link, AskedService.ECHO, "over TLS")).isEqualTo("over TLS");
      final ByteBuffer large =
          get(link.ask(AskedService.question(AskedService.LARGE, String.valueOf(8 << 20))));
      assertThat(large.remaining()).isEqualTo(8 << 20);
    }
    final SparkControlChannel plain = channels.open(service);
    assertThat(reason(() -> connect(plain, channel))).isIn(Reason.CLOSED, Reason.AUTHENTICATION);
  }

  @Test
  void anAnswerThatIsChangedUnderWayIsNoAnswer() throws Exception {
    final SparkControlChannel channel = channels.open(service);
    try (FlippingProxy proxy = new FlippingProxy(Channels.HOST, channel.port());
        ControlLink link = channel.connect(Channels.HOST, proxy.port(), Channels.LIMIT)) {
      assertThat(answer(link, AskedService.ECHO, "as it was")).isEqualTo("as it was");
      proxy.flipNext();
      final CompletableFuture<ByteBuffer> changed =
          link.ask(AskedService.question(AskedService.ECHO, "something else"));
      assertThat(failure(changed)).isNotNull();
    }
  }

  @Test
  void theCipherIsTheOneThatTheUserWants() throws Exception {
    final SparkConf conf = Channels.conf().set(ControlSecurity.CIPHER, "AES/CTR/NoPadding");
    final SparkControlChannel ctr =
        channels.open(conf, 1, service, Channels.LIMIT, ControlLimits.DEFAULT);
    try (ControlLink link = connect(ctr, ctr)) {
      for (int size = 1; size < 4 << 20; size *= 3) {
        final ByteBuffer answer =
            get(link.ask(AskedService.question(AskedService.LARGE, String.valueOf(size))));
        assertThat(answer.remaining()).isEqualTo(size);
      }
    }
  }

  private static void makeKeys(final Path store) throws Exception {
    final Process keytool =
        new ProcessBuilder(
                Path.of(System.getProperty("java.home"), "bin", "keytool").toString(),
                "-genkeypair",
                "-keyalg",
                "EC",
                "-dname",
                "CN=localhost",
                "-storetype",
                "PKCS12",
                "-storepass",
                PASSWORD,
                "-keystore",
                store.toString())
            .inheritIO()
            .start();
    assertThat(keytool.waitFor(30, TimeUnit.SECONDS)).isTrue();
    assertThat(keytool.exitValue()).isZero();
  }

  private static ControlLink connect(final SparkControlChannel from, final SparkControlChannel to) {
    return from.connect(Channels.HOST, to.port(), Channels.LIMIT);
  }

  private static String answer(final ControlLink link, final char kind, final String text)
      throws Exception {
    return AskedService.text(get(link.ask(AskedService.question(kind, text))));
  }

  private static ByteBuffer get(final CompletableFuture<ByteBuffer> answer) throws Exception {
    return answer.get(Channels.LIMIT.toMillis(), TimeUnit.MILLISECONDS);
  }

  private static Throwable failure(final CompletableFuture<ByteBuffer> answer) {
    return catchThrowableOfType(ExecutionException.class, () -> get(answer)).getCause();
  }

  private static Reason reason(final Throwable failure) {
    assertThat(failure).isInstanceOf(ExchangeException.class);
    return ((ExchangeException) failure).reason();
  }

  private static Reason reason(final Runnable connecting) {
    return catchThrowableOfType(ExchangeException.class, connecting::run).reason();
  }
}
