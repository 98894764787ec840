package io.zerohop.device.exchange;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.zerohop.device.Leaks;
import io.zerohop.device.SegmentHandle;
import io.zerohop.device.exchange.ExchangeException.Reason;
import io.zerohop.device.posix.Descriptor;
import io.zerohop.device.posix.FileStatus;
import io.zerohop.device.posix.NativeLibrary;
import io.zerohop.device.posix.Sockets;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.function.Consumer;
import org.assertj.core.api.ThrowableAssert.ThrowingCallable;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** The client against servers that misbehave. */
final class PeerLinkTest {
  private static final Duration LIMIT = Duration.ofSeconds(60);
  private static final Duration SHORT = Duration.ofMillis(100);

  @TempDir Path scratch;

  private Leaks leaks;
  private Path socket;
  private int listener;

  @BeforeEach
  void listen() {
    NativeLibrary.require();
    leaks = new Leaks();
    socket = scratch.resolve("server");
    listener = Sockets.listen(socket.toString(), 10);
  }

  @AfterEach
  void nothingIsLeft() {
    Descriptor.close(listener);
    leaks.check();
  }

  private static PeerLink connect(final Path socket, final Duration limit) {
    return PeerLink.connect(socket, "client", "server", SegmentTable.SECRET, limit);
  }

  /** Connects to a server that does this, and hands the failure on. */
  private ExchangeException.Reason connectTo(final Consumer<RawSocket> behaviour) {
    final CompletableFuture<Void> server = serve(behaviour);
    try (PeerLink link = connect(socket, LIMIT)) {
      link.fetch(1, LIMIT).close();
      throw new AssertionError("a server that misbehaves was not noticed");
    } catch (final ExchangeException e) {
      return e.reason();
    } finally {
      server.join();
    }
  }

  private CompletableFuture<Void> serve(final Consumer<RawSocket> behaviour) {
    return CompletableFuture.runAsync(
        () -> {
          try (RawSocket raw = RawSocket.accept(listener)) {
            behaviour.accept(raw);
          }
        });
  }

  private static void afterFetch(final RawSocket raw, final Frame answer, final int descriptor) {
    raw.welcome(SegmentTable.SECRET);
    raw.receive(Frame.Type.FETCH);
    raw.send(answer, descriptor);
    assertThat(raw.receive()).isNull();
  }

  /** What the server's listening socket is sent with, or nothing at all. */
  private Frame segment(final long id, final SegmentHandle.Kind kind, final int opaque) {
    return segment(id, kind, opaque, Descriptor.status(listener));
  }

  private static Frame segment(
      final long id, final SegmentHandle.Kind kind, final int opaque, final FileStatus file) {
    final OpaqueHandle handle = new OpaqueHandle(kind, 4096, new byte[opaque]);
    return Frame.segment(id, handle, file.device(), file.inode());
  }

  @Test
  void noSocketIsAbsentAndAFileIsRefused() throws Exception {
    final Path file = Files.createFile(scratch.resolve("file"));
    final Path[] paths = {scratch.resolve("none"), file.resolve("below"), file};
    final Reason[] reasons = {Reason.ABSENT, Reason.ABSENT, Reason.REFUSED};
    for (int i = 0; i < paths.length; i++) {
      final Path path = paths[i];
      final Reason reason = reasons[i];
      assertThatThrownBy(() -> connect(path, LIMIT))
          .isInstanceOfSatisfying(
              ExchangeException.class, e -> assertThat(e.reason()).isEqualTo(reason))
          .hasMessageContaining(path.toString());
    }
  }

  @Test
  void aServerThatDoesNotKnowTheSecretIsNotTrusted() {
    final byte[] wrong = "a secret of somebody else.......".getBytes(StandardCharsets.US_ASCII);
    assertThat(connectTo(raw -> raw.welcome(wrong))).isEqualTo(Reason.AUTHENTICATION);
  }

  @Test
  void aServerThatRefusesSaysWhy() {
    assertThat(
            connectTo(
                raw -> {
                  raw.receive(Frame.Type.HELLO);
                  raw.send(Frame.refused(Reason.BUSY));
                }))
        .isEqualTo(Reason.BUSY);
  }

  @Test
  void garbageIsAProtocolError() {
    assertThat(connectTo(raw -> afterHello(raw, new byte[2000], -1))).isEqualTo(Reason.PROTOCOL);
    final byte[] gone =
        new Frame(Frame.Type.GONE, new byte[Long.BYTES + Frame.SEAL_BYTES]).encode();
    assertThat(connectTo(raw -> afterHello(raw, gone, -1))).isEqualTo(Reason.PROTOCOL);
    final byte[] challenge =
        Frame.challenge(new byte[Frame.NONCE_BYTES], ProcessIdentity.self()).encode();
    assertThat(connectTo(raw -> afterHello(raw, challenge, listener))).isEqualTo(Reason.PROTOCOL);
  }

  private static void afterHello(final RawSocket raw, final byte[] answer, final int descriptor) {
    raw.receive(Frame.Type.HELLO);
    raw.send(answer, descriptor);
  }

  /** In between where the kernel does not tell, or a server that was given another's answers. */
  @Test
  void aDescriptorThatTheOwnerDidNotSealIsRefused() {
    final FileStatus other = Descriptor.statusOf(scratch.toString());
    final FileStatus own = Descriptor.status(listener);
    final FileStatus elsewhere =
        new FileStatus(own.device() + 1, own.inode(), own.userId(), own.mode(), own.bytes());
    for (final FileStatus file : new FileStatus[] {other, elsewhere}) {
      final Frame wrong = segment(1, SegmentHandle.Kind.POSIX_FD, 0, file);
      assertThat(connectTo(raw -> afterFetch(raw, wrong, listener)))
          .isEqualTo(Reason.AUTHENTICATION);
    }
  }

  @Test
  void anAnswerWithoutTheSealThatIsDueIsRefused() {
    final Frame gone = Frame.ofId(Frame.Type.GONE, 1);
    assertThat(
            connectTo(
                raw -> {
                  raw.welcome(SegmentTable.SECRET);
                  raw.receive(Frame.Type.FETCH);
                  raw.sealed(Frame.ofId(Frame.Type.FETCH, 1)); // Counts one too many.
                  raw.send(gone);
                }))
        .isEqualTo(Reason.AUTHENTICATION);
    final byte[] forged = new byte[Long.BYTES + Frame.SEAL_BYTES];
    forged[Long.BYTES - 1] = 1;
    assertThat(
            connectTo(
                raw -> {
                  raw.welcome(SegmentTable.SECRET);
                  raw.receive(Frame.Type.FETCH);
                  raw.send(new Frame(Frame.Type.GONE, forged).encode(), -1);
                }))
        .isEqualTo(Reason.AUTHENTICATION);
  }

  @Test
  void aStreamThatEndsIsClosed() {
    assertThat(connectTo(raw -> raw.receive(Frame.Type.HELLO))).isEqualTo(Reason.CLOSED);
    assertThat(
            connectTo(
                raw -> {
                  raw.welcome(SegmentTable.SECRET);
                  raw.receive(Frame.Type.FETCH);
                }))
        .isEqualTo(Reason.CLOSED);
  }

  @Test
  void answersThatDoNotFitAreProtocolErrors() {
    final Frame byFd = segment(1, SegmentHandle.Kind.POSIX_FD, 0);
    final Frame opaque = segment(1, SegmentHandle.Kind.FABRIC, Frame.OPAQUE_BYTES);
    final Frame other = segment(2, SegmentHandle.Kind.POSIX_FD, 0);
    final Frame gone = Frame.ofId(Frame.Type.GONE, 1);
    final Frame goneOther = Frame.ofId(Frame.Type.GONE, 2);
    final Frame cut = segment(1, SegmentHandle.Kind.FABRIC, 5);
    final Frame question = Frame.ofId(Frame.Type.FETCH, 1);
    assertThat(connectTo(raw -> afterFetch(raw, byFd, -1))).isEqualTo(Reason.PROTOCOL);
    assertThat(connectTo(raw -> afterFetch(raw, opaque, listener))).isEqualTo(Reason.PROTOCOL);
    assertThat(connectTo(raw -> afterFetch(raw, other, listener))).isEqualTo(Reason.PROTOCOL);
    assertThat(connectTo(raw -> afterFetch(raw, gone, listener))).isEqualTo(Reason.PROTOCOL);
    assertThat(connectTo(raw -> afterFetch(raw, goneOther, -1))).isEqualTo(Reason.PROTOCOL);
    assertThat(connectTo(raw -> afterFetch(raw, cut, listener))).isEqualTo(Reason.PROTOCOL);
    assertThat(connectTo(raw -> afterFetch(raw, question, listener))).isEqualTo(Reason.PROTOCOL);
  }

  @Test
  void twoDescriptorsForOneAnswerAreClosed() {
    assertThat(
            connectTo(
                raw -> {
                  raw.welcome(SegmentTable.SECRET);
                  raw.receive(Frame.Type.FETCH);
                  final byte[] answer = raw.sealed(segment(1, SegmentHandle.Kind.POSIX_FD, 0));
                  raw.send(Arrays.copyOf(answer, 5), listener);
                  raw.send(Arrays.copyOfRange(answer, 5, answer.length), listener);
                  assertThat(raw.receive()).isNull();
                }))
        .isEqualTo(Reason.PROTOCOL);
  }

  @Test
  void aSilentServerIsATimeOut() {
    assertThatThrownBy(() -> connect(socket, SHORT))
        .isInstanceOfSatisfying(
            ExchangeException.class, e -> assertThat(e.reason()).isEqualTo(Reason.TIMEOUT));
    Descriptor.close(Sockets.accept(listener));
  }

  @Test
  void aPeerThatPausesKeepsItsLink() {
    final CompletableFuture<Void> resumed = new CompletableFuture<>();
    final CompletableFuture<Void> answered = new CompletableFuture<>();
    final CompletableFuture<Void> server =
        serve(
            raw -> {
              raw.welcome(SegmentTable.SECRET);
              assertThat(raw.receive(Frame.Type.FETCH).asId()).isEqualTo(1);
              resumed.join();
              raw.send(segment(1, SegmentHandle.Kind.POSIX_FD, 0), listener);
              answered.complete(null);
              // Nobody was asked for 2 and 3 while the answer for 1 was due.
              assertThat(raw.receive(Frame.Type.FETCH).asId()).isEqualTo(4);
              raw.send(Frame.ofId(Frame.Type.GONE, 4));
              assertThat(raw.receive()).isNull();
            });
    try (PeerLink link = connect(socket, LIMIT)) {
      assertThat(link.isSilent()).isFalse();
      assertUnavailable(() -> link.fetch(1, SHORT));
      assertUnavailable(() -> link.fetch(2, SHORT));
      assertUnavailable(() -> link.fetch(3, SHORT));
      assertThat(link.alive()).isTrue();
      assertThat(link.isSilent()).isTrue();
      resumed.complete(null);
      answered.join();
      assertThat(link.fetch(4, LIMIT)).isNull();
      assertThat(link.alive()).isTrue();
      assertThat(link.isSilent()).isFalse();
    }
    server.join();
  }

  /** Nobody has it, and its lender would count it for as long as the link lives. */
  @Test
  void aLoanThatComesLateGoesBack() {
    final CompletableFuture<Void> resumed = new CompletableFuture<>();
    final CompletableFuture<Void> answered = new CompletableFuture<>();
    final CompletableFuture<Void> server =
        serve(
            raw -> {
              raw.welcome(SegmentTable.SECRET);
              assertThat(raw.receive(Frame.Type.BORROW).asSize()).isEqualTo(4096);
              resumed.join();
              raw.send(segment(77, SegmentHandle.Kind.POSIX_FD, 0), listener);
              answered.complete(null);
              assertThat(raw.receive(Frame.Type.RETURN).asId()).isEqualTo(77);
              raw.send(Frame.ofId(Frame.Type.GONE, 77));
              assertThat(raw.receive()).isNull();
            });
    try (PeerLink link = connect(socket, LIMIT)) {
      assertUnavailable(() -> link.borrow(4096, SHORT));
      link.settle(SHORT);
      resumed.complete(null);
      answered.join();
      link.settle(LIMIT);
      assertThat(link.isSilent()).isFalse();
    }
    server.join();
  }

  /** Readers wait longer than loans do. */
  @Test
  void aFetchWaitsForTheAnswerToALoanThatNobodyWaitsForAnyMore() {
    final CompletableFuture<Void> resumed = new CompletableFuture<>();
    final CompletableFuture<Void> server =
        serve(
            raw -> {
              raw.welcome(SegmentTable.SECRET);
              raw.receive(Frame.Type.BORROW);
              resumed.join();
              raw.send(Frame.ofId(Frame.Type.GONE, 0));
              assertThat(raw.receive(Frame.Type.FETCH).asId()).isEqualTo(4);
              raw.send(Frame.ofId(Frame.Type.GONE, 4));
              assertThat(raw.receive()).isNull();
            });
    try (PeerLink link = connect(socket, LIMIT)) {
      assertUnavailable(() -> link.borrow(4096, SHORT));
      resumed.completeOnTimeout(null, SHORT.toMillis(), TimeUnit.MILLISECONDS);
      assertThat(link.fetch(4, LIMIT)).isNull();
    }
    server.join();
  }

  @Test
  void whatIsGivenBackWhileThePeerIsSilentOrTheLinkInUseIsNotForgotten() {
    final CompletableFuture<Void> asked = new CompletableFuture<>();
    final CompletableFuture<Void> resumed = new CompletableFuture<>();
    final CompletableFuture<Void> server =
        serve(
            raw -> {
              raw.welcome(SegmentTable.SECRET);
              raw.receive(Frame.Type.FETCH);
              asked.complete(null);
              resumed.join();
              raw.send(Frame.ofId(Frame.Type.GONE, 1));
              for (long loan = 77; loan < 80; loan++) {
                assertThat(raw.receive(Frame.Type.RETURN).asId()).isEqualTo(loan);
                raw.send(Frame.ofId(Frame.Type.GONE, loan));
              }
              assertThat(raw.receive()).isNull();
            });
    try (PeerLink link = connect(socket, LIMIT)) {
      final CompletableFuture<Void> reader =
          CompletableFuture.runAsync(() -> assertUnavailable(() -> link.fetch(1, SHORT)));
      asked.join();
      link.giveBack(77, SHORT);
      reader.join();
      link.giveBack(78, SHORT);
      resumed.complete(null);
      link.giveBack(79, LIMIT);
      link.settle(LIMIT);
    }
    server.join();
  }

  @Test
  void loansThatWereNotAskedForAreProtocolErrors() {
    final SegmentHandle.Kind byFd = SegmentHandle.Kind.POSIX_FD;
    final List<Frame> answers =
        List.of(
            segment(77, byFd, 0), // Of another size.
            segment(0, byFd, 0),
            segment(77, SegmentHandle.Kind.FABRIC, Frame.OPAQUE_BYTES),
            Frame.ofId(Frame.Type.GONE, 77),
            Frame.ofId(Frame.Type.WITHHELD, 77));
    for (int i = 0; i < answers.size(); i++) {
      final Frame answer = answers.get(i);
      final long asked = i == 0 ? 8192 : 4096;
      final CompletableFuture<Void> server =
          serve(
              raw -> {
                raw.welcome(SegmentTable.SECRET);
                raw.receive(Frame.Type.BORROW);
                raw.send(answer, answer.type() == Frame.Type.SEGMENT ? listener : -1);
                assertThat(raw.receive()).isNull();
              });
      try (PeerLink link = connect(socket, LIMIT)) {
        assertThatThrownBy(() -> link.borrow(asked, LIMIT))
            .as("answer %d", i)
            .isInstanceOfSatisfying(
                ExchangeException.class, e -> assertThat(e.reason()).isEqualTo(Reason.PROTOCOL));
        assertThat(link.alive()).isFalse();
      }
      server.join();
    }
  }

  @Test
  void aLateAnswerThatDoesNotFitIsAProtocolError() {
    final CompletableFuture<Void> resumed = new CompletableFuture<>();
    final CompletableFuture<Void> answered = new CompletableFuture<>();
    final CompletableFuture<Void> server =
        serve(
            raw -> {
              raw.welcome(SegmentTable.SECRET);
              raw.receive(Frame.Type.FETCH);
              resumed.join();
              raw.send(segment(2, SegmentHandle.Kind.POSIX_FD, 0), listener);
              answered.complete(null);
              assertThat(raw.receive()).isNull();
            });
    try (PeerLink link = connect(socket, LIMIT)) {
      assertUnavailable(() -> link.fetch(1, SHORT));
      resumed.complete(null);
      answered.join();
      assertThatThrownBy(() -> link.fetch(2, LIMIT))
          .isInstanceOfSatisfying(
              ExchangeException.class, e -> assertThat(e.reason()).isEqualTo(Reason.PROTOCOL));
      assertThat(link.alive()).isFalse();
      server.join();
    }
  }

  @Test
  void aPeerThatEndsWhileItPausesEndsTheLink() {
    final CompletableFuture<Void> killed = new CompletableFuture<>();
    final CompletableFuture<Void> server =
        serve(
            raw -> {
              raw.welcome(SegmentTable.SECRET);
              raw.receive(Frame.Type.FETCH);
              killed.join();
            });
    try (PeerLink link = connect(socket, LIMIT)) {
      assertUnavailable(() -> link.fetch(1, SHORT));
      killed.complete(null);
      server.join();
      assertThatThrownBy(() -> link.fetch(1, LIMIT))
          .isInstanceOfSatisfying(
              ExchangeException.class, e -> assertThat(e.reason()).isEqualTo(Reason.CLOSED));
    }
  }

  private static void assertUnavailable(final ThrowingCallable fetch) {
    assertThatThrownBy(fetch)
        .isInstanceOfSatisfying(
            ExchangeException.class, e -> assertThat(e.reason()).isEqualTo(Reason.UNAVAILABLE));
  }

  @Test
  void closingALinkEndsAFetchInProgress() {
    final CompletableFuture<Void> asked = new CompletableFuture<>();
    final CompletableFuture<Void> server =
        serve(
            raw -> {
              raw.welcome(SegmentTable.SECRET);
              raw.receive(Frame.Type.FETCH);
              asked.complete(null);
              assertThat(raw.receive()).isNull();
            });
    try (PeerLink link = connect(socket, LIMIT)) {
      asked.thenRun(link::close);
      assertThatThrownBy(() -> link.fetch(1, LIMIT))
          .isInstanceOfSatisfying(
              ExchangeException.class, e -> assertThat(e.reason()).isEqualTo(Reason.CLOSED));
      server.join();
    }
  }

  @Test
  void manyLinksComeAndGo() {
    for (int i = 0; i < 300; i++) {
      final CompletableFuture<Void> server = serve(raw -> raw.welcome(SegmentTable.SECRET));
      final CompletableFuture<Void> ended = new CompletableFuture<>();
      try (PeerLink link = connect(socket, LIMIT)) {
        link.onClosed(() -> ended.complete(null));
        if (i % 2 == 0) {
          ended.join();
        }
      }
      ended.join();
      server.join();
    }
  }
}
