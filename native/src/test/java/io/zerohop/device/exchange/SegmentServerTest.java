package io.zerohop.device.exchange;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.zerohop.device.ChildJvm;
import io.zerohop.device.Segment;
import io.zerohop.device.SegmentHandle;
import io.zerohop.device.ZerohopException;
import io.zerohop.device.exchange.ExchangeException.Reason;
import io.zerohop.device.posix.FdHandle;
import io.zerohop.device.posix.Memory;
import io.zerohop.device.posix.PosixException;
import java.nio.file.Files;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Test;

/** The server, by way of real links and of raw sockets. */
final class SegmentServerTest extends SegmentServerFixture {

  @Test
  void handsOutSegments() {
    try (Segment segment = device.allocate(1 << 16);
        PeerLink link = link()) {
      table.add(3, segment);
      assertThat(link.greeting()).isEqualTo(SegmentTable.greetingFor("client"));
      assertThat(link.seesProcess()).isTrue();
      assertThat(link.isProcessGone()).isFalse();
      for (int i = 0; i < 100; i++) {
        try (Segment mapped = device.map(link.fetch(3, LIMIT), "a peer")) {
          assertThat(mapped.bytes()).isEqualTo(segment.bytes());
          assertThat(mapped.address()).isNotEqualTo(segment.address());
        }
        assertThat(link.fetch(4, LIMIT)).isNull();
      }
    }
  }

  @Test
  void opaqueHandlesTravelToo() {
    final byte[] opaque = new byte[Frame.OPAQUE_BYTES];
    opaque[5] = 77;
    table.add(1, () -> new OpaqueHandle(SegmentHandle.Kind.FABRIC, 1L << 33, opaque));
    try (PeerLink link = link();
        SegmentHandle handle = link.fetch(1, LIMIT)) {
      assertThat(handle.kind()).isEqualTo(SegmentHandle.Kind.FABRIC);
      assertThat(handle.bytes()).isEqualTo(1L << 33);
      assertThat(handle.opaque()).isEqualTo(opaque);
    }
  }

  @Test
  void manyLinksAtOnce() {
    try (Segment segment = device.allocate(1)) {
      table.add(1, segment);
      final List<CompletableFuture<Void>> clients = new ArrayList<>();
      for (int i = 0; i < 64; i++) {
        clients.add(
            CompletableFuture.runAsync(
                () -> {
                  try (PeerLink link = link()) {
                    for (int j = 0; j < 50; j++) {
                      link.fetch(1, LIMIT).close();
                    }
                  }
                }));
      }
      clients.forEach(CompletableFuture::join);
    }
  }

  @Test
  void manyRequestsOfOnePeerAreServedInTurns() throws Exception {
    final List<Long> order = new CopyOnWriteArrayList<>();
    final CountDownLatch begun = new CountDownLatch(1);
    final CountDownLatch sent = new CountDownLatch(1);
    table.add(
        1,
        () -> {
          order.add(1L);
          begun.countDown();
          await(sent);
          return null;
        });
    table.add(
        2,
        () -> {
          order.add(2L);
          return null;
        });
    final int requests = 100;
    try (RawSocket greedy = RawSocket.connect(server.socket()).shakeHands("greedy", "server");
        RawSocket other = RawSocket.connect(server.socket()).shakeHands("other", "server")) {
      greedy.send(Frame.ofId(Frame.Type.FETCH, 1));
      await(begun);
      for (int i = 1; i < requests; i++) {
        greedy.send(Frame.ofId(Frame.Type.FETCH, 1));
      }
      other.send(Frame.ofId(Frame.Type.FETCH, 2));
      sent.countDown();
      assertThat(other.receive(Frame.Type.GONE).asId()).isEqualTo(2);
      for (int i = 0; i < requests; i++) {
        assertThat(greedy.receive(Frame.Type.GONE).asId()).isEqualTo(1);
      }
    }
    assertThat(order).hasSize(requests + 1);
    assertThat(order.indexOf(2L)).isLessThanOrEqualTo(2 * ServerConnection.MAX_REPLIES);
  }

  private static void await(final CountDownLatch latch) {
    try {
      assertThat(latch.await(LIMIT.toSeconds(), TimeUnit.SECONDS)).isTrue();
    } catch (final InterruptedException e) {
      throw new AssertionError(e);
    }
  }

  @Test
  void anUnsealedSegmentIsRefusedByWhoReceivesIt() {
    table.add(
        1,
        () -> {
          final int fd = Memory.create("zerohop-unsealed");
          Memory.resize(fd, 4096);
          return new FdHandle(fd, 4096);
        });
    try (PeerLink link = link()) {
      final SegmentHandle handle = link.fetch(1, LIMIT);
      assertThatThrownBy(() -> device.map(handle, "a peer"))
          .isInstanceOf(ZerohopException.class)
          .hasMessageContaining("not sealed");
    }
  }

  @Test
  void aServerThatFailsSaysSoBeforeItsConnectionsEnd() throws Exception {
    table.add(
        1,
        () -> {
          throw new StackOverflowError("a bug of its own");
        });
    final CompletableFuture<Void> closed = new CompletableFuture<>();
    try (PeerLink idle = link();
        PeerLink link = link()) {
      idle.onClosed(() -> closed.complete(null));
      assertThatThrownBy(() -> link.fetch(1, LIMIT)).isInstanceOf(ExchangeException.class);
      closed.get(LIMIT.toSeconds(), TimeUnit.SECONDS);
      assertThat(table.failures).containsExactly("a bug of its own, 0 disconnected");
    }
    server.close();
    assertThat(table.disconnected).hasValue(2);
  }

  @Test
  void descriptorsThatPeersSendAreDropped() {
    try (RawSocket raw = RawSocket.connect(server.socket())) {
      raw.shakeHands("client", "server");
      for (int i = 0; i < 100; i++) {
        raw.send(Frame.ofId(Frame.Type.FETCH, 5), 0);
        raw.receive(Frame.Type.GONE);
      }
    }
  }

  @Test
  void aPeerThatAsksAndNeverReadsHoldsNobodyUp() {
    final AtomicInteger exported = new AtomicInteger();
    table.add(
        1,
        () -> {
          exported.incrementAndGet();
          return new OpaqueHandle(SegmentHandle.Kind.FABRIC, 1, new byte[Frame.OPAQUE_BYTES]);
        });
    try (RawSocket greedy = RawSocket.connect(server.socket());
        PeerLink link = link()) {
      greedy.shakeHands("greedy", "server");
      final Frame question = Frame.ofId(Frame.Type.FETCH, 1);
      int asked = 0;
      while (asked < 1_000_000 && greedy.send(greedy.sealed(question), -1)) {
        asked++;
      }
      assertThat(asked).isLessThan(1_000_000);
      link.fetch(1, LIMIT).close();
      assertThat(exported.get()).isLessThanOrEqualTo(asked + 1);
    }
  }

  @Test
  void aSegmentThatCannotBeExportedIsWithheldAndTheLinkStays() {
    for (final RuntimeException failure :
        List.of(
            new IllegalStateException("on purpose"),
            new PosixException("fcntl(F_DUPFD_CLOEXEC)", PosixException.EMFILE, "on purpose"))) {
      table.add(
          1,
          () -> {
            throw failure;
          });
      try (Segment segment = device.allocate(1);
          PeerLink link = link()) {
        table.add(3, segment);
        for (int i = 0; i < 3; i++) {
          assertReason(Reason.UNAVAILABLE, () -> link.fetch(1, LIMIT));
        }
        assertThat(link.alive()).isTrue();
        link.fetch(3, LIMIT).close();
        table.add(1, segment);
        link.fetch(1, LIMIT).close();
        assertThat(table.disconnected.get()).isLessThan(table.connected.get());
      }
    }
  }

  @Test
  void aPeerWithoutRoomForADescriptorKeepsItsLink() throws Exception {
    table.add(
        1,
        () -> {
          throw new IllegalStateException("on purpose");
        });
    try (Segment segment = device.allocate(1);
        ChildJvm child =
            ChildJvm.start(
                List.of("sh", "-c", "ulimit -n 256; exec \"$@\"", "sh"),
                FullTablePeer.class,
                server.socket().toString(),
                "1",
                "3",
                Long.toString(segment.bytes()))) {
      table.add(3, segment).lend(segment);
      assertThat(child.line()).isEqualTo("UNAVAILABLE fetched borrowed");
      assertThat(child.line()).isEqualTo("UNAVAILABLE UNAVAILABLE true");
      assertThat(child.line()).isEqualTo("UNAVAILABLE");
      assertThat(child.line()).isEqualTo("fetched");
      assertThat(table.asked).hasSize(2);
      assertThat(table.out).as("nobody has it, so it went back").isEmpty();
      assertThat(child.exitCode()).isZero();
    }
  }

  @Test
  void segmentsAreLentAndReturned() {
    try (Segment segment = device.allocate(1);
        PeerLink link = link()) {
      table.lend(segment);
      final PeerLink.Loan loan = link.borrow(segment.bytes(), LIMIT);
      assertThat(loan.handle().bytes()).isEqualTo(segment.bytes());
      loan.handle().close();
      assertThat(table.out).containsExactly(loan.segmentId());
      assertThat(link.borrow(segment.bytes() + 1, LIMIT)).as("nobody lends that").isNull();
      link.giveBack(loan.segmentId(), LIMIT);
      assertThat(table.out).isEmpty();
      assertThat(link.fetch(loan.segmentId(), LIMIT)).as("no segment of the directory").isNull();
    }
  }

  @Test
  void sizesThatAreNoneEndTheConnection() {
    for (final long bytes : new long[] {0, -1, Long.MIN_VALUE}) {
      try (PeerLink link = link()) {
        assertReason(Reason.PROTOCOL, () -> link.borrow(bytes, LIMIT));
      }
    }
    assertThat(table.asked).isEmpty();
  }

  @Test
  void whoHasNotProvedItselfBorrowsNothing() {
    try (RawSocket raw = RawSocket.connect(server.socket())) {
      raw.send(Frame.borrow(4096));
      final Frame answer = raw.receive();
      assertThat(answer == null || answer.type() == Frame.Type.REFUSED).isTrue();
    }
    try (RawSocket raw = RawSocket.connect(server.socket()).shakeHands("client", "server")) {
      raw.send(new Frame(Frame.Type.BORROW, new byte[8 + Frame.SEAL_BYTES]).encode(), -1);
      final Frame answer = raw.receive();
      assertThat(answer == null || answer.type() == Frame.Type.REFUSED).isTrue();
    }
    assertThat(table.asked).isEmpty();
  }

  /** A handle that cannot be written down is closed, and refused like one that cannot be made. */
  @Test
  void aHandleThatCannotBeSentIsWithheldToo() {
    final AtomicInteger closed = new AtomicInteger();
    table.add(1, () -> new BadHandle(closed));
    try (PeerLink link = link()) {
      assertReason(Reason.UNAVAILABLE, () -> link.fetch(1, LIMIT));
      assertThat(closed).hasValue(1);
      assertThat(link.fetch(2, LIMIT)).isNull();
    }
  }

  /** The peer does not know of it, so nobody else would end it. */
  @Test
  void aLoanThatCannotBeSentIsNoLongerLent() {
    final AtomicInteger closed = new AtomicInteger();
    table.lend(4096, () -> new BadHandle(closed));
    try (PeerLink link = link()) {
      assertReason(Reason.UNAVAILABLE, () -> link.borrow(4096, LIMIT));
      assertThat(closed).hasValue(1);
      assertThat(table.asked).containsExactly(4096L);
      assertThat(table.out).isEmpty();
    }
  }

  private record BadHandle(AtomicInteger closed) implements SegmentHandle {
    @Override
    public Kind kind() {
      return Kind.FABRIC;
    }

    @Override
    public long bytes() {
      return 1;
    }

    @Override
    public int fd() {
      throw new IllegalStateException("no descriptor");
    }

    @Override
    public byte[] opaque() {
      throw new IllegalStateException("on purpose");
    }

    @Override
    public void close() {
      closed.incrementAndGet();
    }
  }

  @Test
  void theEndOfTheServerEndsItsLinks() {
    final CompletableFuture<Void> ended = new CompletableFuture<>();
    try (PeerLink link = link()) {
      link.onClosed(() -> ended.complete(null));
      server.close();
      ended.join();
      assertThat(link.alive()).isFalse();
      final CompletableFuture<Void> late = new CompletableFuture<>();
      link.onClosed(() -> late.complete(null));
      assertThat(late).isCompleted();
      assertReason(Reason.CLOSED, () -> link.fetch(1, LIMIT));
      assertReason(Reason.ABSENT, this::link);
    }
  }

  @Test
  void aServerIsStartedOnceAndNotAfterItsEnd() {
    assertThatThrownBy(server::start)
        .isInstanceOf(IllegalStateException.class)
        .hasMessageContaining("server is serving");
    link().close();
    server.close();
    assertThatThrownBy(server::start)
        .isInstanceOf(IllegalStateException.class)
        .hasMessageContaining("server is closed");
    assertThat(server.socket()).doesNotExist();
  }

  @Test
  void aStartThatFailedIsTriedAgain() {
    final SegmentServer second =
        new SegmentServer(
            folder, "server", SegmentTable.SECRET, table, SegmentServer.Limits.DEFAULT);
    assertThatThrownBy(second::start).isInstanceOf(ZerohopException.class);
    server.close();
    second.start();
    link().close();
    second.close();
  }

  @Test
  void twoServersOfOneNameCannotBe() {
    final SegmentServer second =
        new SegmentServer(
            folder, "server", SegmentTable.SECRET, table, SegmentServer.Limits.DEFAULT);
    assertThatThrownBy(second::start)
        .isInstanceOf(ZerohopException.class)
        .hasMessageContaining("rename");
    second.close();
    assertThat(Files.exists(server.socket())).isTrue();
    link().close();
  }
}
