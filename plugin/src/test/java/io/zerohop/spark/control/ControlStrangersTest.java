package io.zerohop.spark.control;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.zerohop.device.exchange.ExchangeException.Reason;
import io.zerohop.shuffle.transport.ControlChannel.ControlLink;
import io.zerohop.spark.control.OpenChannels.ControlLimits;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.net.SocketException;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.concurrent.CompletableFuture;
import org.apache.spark.network.TransportContext;
import org.apache.spark.network.client.TransportClient;
import org.apache.spark.network.client.TransportClientFactory;
import org.apache.spark.network.protocol.Message;
import org.apache.spark.network.server.NoOpRpcHandler;
import org.apache.spark.network.util.MapConfigProvider;
import org.apache.spark.network.util.TransportConf;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.ValueSource;

/** Whoever has no secret reaches no service, and costs no more than its connection. */
class ControlStrangersTest extends ControlChannelFixture {
  private static final ControlLimits DEFAULT = ControlLimits.DEFAULT;
  private SparkControlChannel channel;

  @BeforeEach
  void open() {
    channel = channels.open(service);
  }

  @AfterEach
  void membersAreStillServedAndNobodyElseWas() throws Exception {
    assertThat(service.asked).isEmpty();
    try (ControlLink link = connect(channel, channel)) {
      assertThat(answer(link, AskedService.ECHO, "member")).isEqualTo("member");
    } finally {
      channels.close();
    }
    assertThat(service.asked).hasSize(1);
    assertThat(service.gone).hasSize(1);
  }

  @Test
  void strangersAreCountedAndMembersAreNot() throws Exception {
    assertThat(channel.strangers()).isZero();
    for (int i = 0; i < 3; i++) {
      try (Socket stranger = new Socket(Channels.HOST, channel.port())) {
        stranger.getOutputStream().write("GET / HTTP/1.1\r\n\r\n".getBytes(StandardCharsets.UTF_8));
        assertThat(stranger.getInputStream().read()).as("the end").isEqualTo(-1);
      }
    }
    connect(channel, channel).close();
    awaitStrangers(3);
  }

  /** The end of each is seen by a thread of its own. */
  private void awaitStrangers(final int count) throws InterruptedException {
    final long deadline = System.nanoTime() + Channels.LIMIT.toNanos();
    while (channel.strangers() < count && System.nanoTime() - deadline < 0) {
      Thread.sleep(5);
    }
    assertThat(channel.strangers()).isEqualTo(count);
  }

  @Test
  void sparksClientWithoutAProofIsRefused() throws Exception {
    final TransportConf conf =
        new TransportConf("zerohop-stranger", new MapConfigProvider(Map.of()));
    try (TransportContext context = new TransportContext(conf, new NoOpRpcHandler());
        TransportClientFactory factory = context.createClientFactory();
        TransportClient client = factory.createUnmanagedClient(Channels.HOST, channel.port())) {
      assertThatThrownBy(
              () ->
                  client.sendRpcSync(
                      AskedService.question(AskedService.ECHO, "hello"), Channels.LIMIT.toMillis()))
          .rootCause()
          .isInstanceOf(IOException.class);
    }
  }

  @Test
  void garbageClosesOnlyItsOwnConnection() throws Exception {
    final Random random = new Random(1);
    for (int i = 0; i < 200; i++) {
      final byte[] garbage = new byte[8 + random.nextInt(300)];
      random.nextBytes(garbage);
      // Lengths that could be meant, so that what is behind them is looked at as well.
      if (i % 2 == 0) {
        ByteBuffer.wrap(garbage).putLong(garbage.length);
      }
      try (Socket socket = RawFrames.connect(channel.port())) {
        socket.getOutputStream().write(garbage);
        socket.shutdownOutput();
        RawFrames.readToEnd(socket);
      }
    }
  }

  @Test
  void aChangedProofIsRefused() throws Exception {
    final byte[] proof = recordProof();
    final Random random = new Random(2);
    for (int i = 0; i < 100; i++) {
      final byte[] changed = proof.clone();
      // Behind the length of the frame and the request id, which proves nothing.
      final int at = 17 + random.nextInt(proof.length - 17);
      changed[at] ^= (byte) (1 << random.nextInt(8));
      if (at < 21) {
        continue; // Spark does not look at the length of the body.
      }
      refused(changed);
    }
  }

  @Test
  void halfAFrameAndTheEnd() throws Exception {
    final byte[] proof = recordProof();
    int halves = 0;
    for (int length = 1; length < proof.length; length += 7) {
      try (Socket socket = RawFrames.connect(channel.port())) {
        socket.getOutputStream().write(proof, 0, length);
        socket.shutdownOutput();
        assertThat(RawFrames.readToEnd(socket)).as("the answer to %d bytes", length).isZero();
      }
      halves++;
    }
    awaitStrangers(halves);
  }

  @ParameterizedTest
  @ValueSource(longs = {Long.MAX_VALUE, Long.MIN_VALUE, -1, 0, 8, 1L << 40, 1L << 31, 1 << 20})
  void aLengthThatNoProofHas(final long length) throws Exception {
    refused(ByteBuffer.allocate(Long.BYTES).putLong(length).array());
  }

  @ParameterizedTest
  @ValueSource(ints = {Integer.MAX_VALUE, Integer.MIN_VALUE, -1, 36, 1 << 30})
  void aLengthWithinAProofThatIsNotThere(final int length) throws Exception {
    refused(RawFrames.frame(RawFrames.QUESTION, 1, RawFrames.proofWithLength(length)));
  }

  @ParameterizedTest
  @EnumSource(Message.Type.class)
  void noOtherMessageIsTaken(final Message.Type type) throws Exception {
    refused(RawFrames.frame(type.id(), 1, new byte[] {'e', 'x'}));
  }

  @Test
  void whatComesAlongWithAProofIsNotTaken() throws Exception {
    final byte[] proof = recordProof();
    final byte[] question = RawFrames.question("e-injected");
    final byte[] both = Arrays.copyOf(proof, proof.length + question.length);
    System.arraycopy(question, 0, both, proof.length, question.length);
    refused(both);
  }

  @Test
  void aProofSentAgainIsWorthNothing() throws Exception {
    final byte[] proof = recordProof();
    try (Socket socket = RawFrames.connect(channel.port())) {
      socket.getOutputStream().write(proof);
      // It is a right one, but whose key only its maker knows; what follows has to fit that.
      assertThat(RawFrames.requestOf(RawFrames.readFrame(socket)))
          .isEqualTo(RawFrames.requestOf(proof));
      final byte[] question = RawFrames.question("e-replayed");
      for (int i = 0; i < 20; i++) {
        socket.getOutputStream().write(question);
      }
      RawFrames.readToEnd(socket);
    } catch (final SocketException closedWhileWriting) {
      assertThat(service.asked).isEmpty();
    }
  }

  @Test
  void aServerWithoutTheSecretIsNotBelieved() throws Exception {
    assertThat(impostor(RawFrames.ANSWER, new byte[80])).isEqualTo(Reason.AUTHENTICATION);
    assertThat(impostor(RawFrames.ANSWER, RawFrames.proofWithLength(Integer.MAX_VALUE)))
        .isEqualTo(Reason.AUTHENTICATION);
    assertThat(impostor(RawFrames.ANSWER, new byte[DEFAULT.strangerFrame()]))
        .isEqualTo(Reason.AUTHENTICATION);
    assertThat(impostor(RawFrames.FAILURE, "no".getBytes(StandardCharsets.UTF_8)))
        .isEqualTo(Reason.AUTHENTICATION);
  }

  @Test
  void aServerWithoutTheSecretCannotAsk() throws Exception {
    assertThat(impostor(RawFrames.QUESTION, "e-reversed".getBytes(StandardCharsets.UTF_8)))
        .isEqualTo(Reason.AUTHENTICATION);
  }

  @Test
  void aServerThatHangsUpIsGone() throws Exception {
    try (ServerSocket server = listen()) {
      final CompletableFuture<Reason> reason = connectTo(server);
      RawFrames.accept(server).close();
      assertThat(get(reason)).isEqualTo(Reason.CLOSED);
    }
  }

  @Test
  void theSilentAreSentAway() throws Exception {
    final SparkControlChannel strict = strict(Duration.ofMillis(100), 10);
    try (Socket first = RawFrames.connect(strict.port());
        Socket second = RawFrames.connect(strict.port())) {
      second.getOutputStream().write(recordProof(), 0, 20);
      assertThat(RawFrames.readToEnd(first)).isZero();
      assertThat(RawFrames.readToEnd(second)).isZero();
    }
  }

  @Test
  void onlySoManyStrangersAreHeard() throws Exception {
    final SparkControlChannel strict = strict(Duration.ofHours(1), 2);
    final List<CompletableFuture<Integer>> ends = new ArrayList<>();
    try (Socket first = RawFrames.connect(strict.port());
        Socket second = RawFrames.connect(strict.port());
        Socket third = RawFrames.connect(strict.port())) {
      for (final Socket socket : List.of(first, second, third)) {
        ends.add(
            CompletableFuture.supplyAsync(() -> end(socket), task -> new Thread(task).start()));
      }
      get(CompletableFuture.anyOf(ends.toArray(CompletableFuture[]::new)));
      assertThat(ends.stream().filter(CompletableFuture::isDone)).hasSize(1);
    }
    get(CompletableFuture.allOf(ends.toArray(CompletableFuture[]::new)));
  }

  @Test
  void idleConnectionsKeepNobodyOut() throws Exception {
    final List<Socket> idle = new ArrayList<>();
    try {
      for (int i = 0; i < 2 * DEFAULT.unproven(); i++) {
        idle.add(RawFrames.connect(channel.port()));
      }
      // The last one is in when it is heard.
      idle.get(idle.size() - 1)
          .getOutputStream()
          .write("x".repeat(8).getBytes(StandardCharsets.UTF_8));
      assertThat(RawFrames.readToEnd(idle.get(idle.size() - 1))).isZero();
      for (int i = 0; i < 5; i++) {
        connect(channel, channel).close();
      }
      assertThat(channel.strangers()).as("the one that was heard").isLessThanOrEqualTo(1);
    } finally {
      for (final Socket socket : idle) {
        socket.close();
      }
    }
  }

  private static int end(final Socket socket) {
    try {
      return RawFrames.readToEnd(socket);
    } catch (final IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  private SparkControlChannel strict(final Duration proof, final int unproven) {
    final ControlLimits limits =
        new ControlLimits(
            DEFAULT.strangerFrame(),
            1 << 10,
            1 << 10,
            1 << 20,
            unproven,
            unproven,
            DEFAULT.close());
    return channels.open(
        Channels.conf().set("spark.zerohop.connect.timeout", proof.toMillis() + "ms"),
        1,
        service,
        Channels.LIMIT,
        limits);
  }

  @Test
  void aMembersFrameHasItsLimitToo() throws Exception {
    final SparkControlChannel strict = strict(Duration.ofSeconds(5), 2);
    try (ControlLink link = connect(channel, strict)) {
      final CompletableFuture<ByteBuffer> answer =
          link.ask(AskedService.question(AskedService.ECHO, "x".repeat(1 << 10)));
      assertThat(reason(failure(answer))).isEqualTo(Reason.CLOSED);
    }
  }

  /** The answering end hangs up on these bytes. */
  private void refused(final byte[] bytes) throws IOException {
    try (Socket socket = RawFrames.connect(channel.port())) {
      socket.getOutputStream().write(bytes);
      RawFrames.readToEnd(socket);
    }
  }

  /** What a member sends first, as somebody on the way sees it. */
  private byte[] recordProof() throws Exception {
    try (ServerSocket server = listen()) {
      final CompletableFuture<Reason> reason = connectTo(server);
      final byte[] proof;
      try (Socket member = RawFrames.accept(server)) {
        proof = RawFrames.readFrame(member);
      }
      get(reason);
      return proof;
    }
  }

  /** How connecting to one ends that sends these bytes for a proof. */
  private Reason impostor(final byte type, final byte[] body) throws Exception {
    try (ServerSocket server = listen()) {
      final CompletableFuture<Reason> reason = connectTo(server);
      try (Socket member = RawFrames.accept(server)) {
        final long request = RawFrames.requestOf(RawFrames.readFrame(member));
        member.getOutputStream().write(RawFrames.frame(type, request, body));
        RawFrames.readToEnd(member);
      }
      return get(reason);
    }
  }

  private CompletableFuture<Reason> connectTo(final ServerSocket server) {
    return CompletableFuture.supplyAsync(
        () -> reason(() -> channel.connect(Channels.HOST, server.getLocalPort(), Channels.LIMIT)));
  }

  private static ServerSocket listen() throws IOException {
    return new ServerSocket(0, 5, InetAddress.getByName(Channels.HOST));
  }
}
