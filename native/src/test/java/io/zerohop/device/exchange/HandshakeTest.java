package io.zerohop.device.exchange;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.zerohop.device.ChildJvm;
import io.zerohop.device.Segment;
import io.zerohop.device.exchange.ExchangeException.Reason;
import io.zerohop.device.exchange.Frame.FrameDecoder;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;

/** Peers that prove themselves to a segment server, or do not. */
class HandshakeTest extends SegmentServerFixture {
  private static final byte[] WRONG =
      "another secret of 32 bytes, wrong".getBytes(StandardCharsets.US_ASCII);

  @Test
  void aWrongSecretIsRefused() {
    for (int i = 0; i < 20; i++) {
      assertReason(Reason.AUTHENTICATION, () -> link(WRONG));
    }
    assertThat(table.connected.get()).isZero();
  }

  @Test
  void aMissingSecretIsRefused() {
    for (final byte[] missing : new byte[][] {null, new byte[0], new byte[15]}) {
      assertThatThrownBy(() -> link(missing)).isInstanceOf(IllegalArgumentException.class);
      assertThatThrownBy(
              () -> new SegmentServer(folder, "s", missing, table, SegmentServer.Limits.DEFAULT))
          .isInstanceOf(IllegalArgumentException.class);
    }
    try (RawSocket raw = RawSocket.connect(server.socket())) {
      raw.send(new Frame(Frame.Type.FETCH, new byte[Long.BYTES + Frame.SEAL_BYTES]));
      assertRefused(raw, Reason.PROTOCOL);
    }
    try (RawSocket raw = RawSocket.connect(server.socket())) {
      raw.send(Frame.hello(Proofs.newNonce(), "client", "server"));
      raw.receive(Frame.Type.CHALLENGE);
      raw.send(new Frame(Frame.Type.ANSWER, new byte[Frame.PROOF_BYTES]));
      assertRefused(raw, Reason.AUTHENTICATION);
    }
    assertThat(table.connected.get()).isZero();
    assertThat(server.refused()).isGreaterThanOrEqualTo(2);
  }

  @Test
  void aProofCannotBeSentBackNorTwice() {
    final Frame.Hello hello = new Frame.Hello(Proofs.newNonce(), "client", "server");
    final byte[] nonce = Proofs.newNonce();
    final Proofs proofs = new Proofs(SegmentTable.SECRET);
    assertThat(proofs.ofClient(hello, nonce))
        .isEqualTo(proofs.ofClient(hello, nonce))
        .isNotEqualTo(proofs.ofServer(hello, nonce, new byte[0]))
        .isNotEqualTo(proofs.ofClient(hello, Proofs.newNonce()));
    byte[] used = null;
    for (int i = 0; i < 2; i++) {
      try (RawSocket raw = RawSocket.connect(server.socket())) {
        raw.send(Frame.hello(hello.nonce(), "client", "server"));
        final byte[] challenge = raw.receive(Frame.Type.CHALLENGE).payload();
        used = used == null ? proofs.ofClient(hello, challenge) : used;
        raw.send(new Frame(Frame.Type.ANSWER, used));
        if (i == 0) {
          raw.receive(Frame.Type.WELCOME);
        } else {
          assertRefused(raw, Reason.AUTHENTICATION);
        }
      }
    }
  }

  /** A jar of before, whose HELLO states no process, and one of after. */
  @Test
  void aPeerOfAnotherVersionIsRefused() {
    for (final int version : new int[] {Frame.VERSION - 1, Frame.VERSION + 1}) {
      final byte[] hello = Frame.hello(Proofs.newNonce(), "client", "server").encode();
      hello[2] = (byte) version;
      try (RawSocket raw = RawSocket.connect(server.socket())) {
        raw.send(hello, -1);
        assertRefused(raw, Reason.PROTOCOL);
      }
      final FrameDecoder decoder = new FrameDecoder();
      decoder.append(hello, 0, hello.length);
      assertThatThrownBy(decoder::next)
          .isInstanceOf(ExchangeException.class)
          .hasMessageContaining("version " + version)
          .hasMessageContaining("this process version " + Frame.VERSION)
          .hasMessageContaining("same Zerohop jar");
    }
    assertThat(table.connected.get()).isZero();
  }

  @Test
  void aPeerThatLooksForSomebodyElseIsRefused() {
    assertReason(
        Reason.AUTHENTICATION,
        () -> PeerLink.connect(server.socket(), "client", "other", SegmentTable.SECRET, LIMIT));
  }

  @Test
  void aHandshakeThatDoesNotGoOnIsEnded() {
    // As long as a busy machine may take between two lines of this test.
    start(table, new SegmentServer.Limits(100, 100, Duration.ofSeconds(2)));
    try (PeerLink link = link();
        RawSocket silent = RawSocket.connect(server.socket());
        RawSocket half = RawSocket.connect(server.socket())) {
      half.send(Frame.hello(Proofs.newNonce(), "client", "server"));
      half.receive(Frame.Type.CHALLENGE);
      assertRefused(silent, Reason.TIMEOUT);
      assertRefused(half, Reason.TIMEOUT);
      assertThat(link.alive()).isTrue();
      assertThat(link.fetch(9, LIMIT)).isNull();
    }
  }

  @Test
  void whoDoesNotProveItselfMakesRoomForOthers() {
    start(table, new SegmentServer.Limits(4, 2, LIMIT));
    try (RawSocket first = RawSocket.connect(server.socket());
        RawSocket second = RawSocket.connect(server.socket())) {
      for (final RawSocket half : List.of(first, second)) {
        half.send(Frame.hello(Proofs.newNonce(), "client", "server"));
        half.receive(Frame.Type.CHALLENGE);
      }
      final List<PeerLink> links = new ArrayList<>();
      links.add(link());
      assertRefused(first, Reason.BUSY);
      while (links.size() < 4) {
        links.add(link());
      }
      assertRefused(second, Reason.BUSY);
      assertReason(Reason.BUSY, this::link);
      assertThat(links).allMatch(PeerLink::alive);
      links.forEach(PeerLink::close);
    }
  }

  @Test
  void aFloodOfConnectionsKeepsNobodyOut() throws Exception {
    start(table, new SegmentServer.Limits(64, 8, LIMIT));
    try (Segment segment = device.allocate(1);
        ChildJvm child =
            ChildJvm.start(List.of(), FloodingPeer.class, server.socket().toString())) {
      table.add(1, segment);
      assertThat(child.line()).isEqualTo("flooding");
      for (int i = 0; i < 100; i++) {
        try (PeerLink link = link()) {
          link.fetch(1, LIMIT).close();
        }
      }
    }
  }

  @Test
  void aFloodOfRequestsKeepsNobodyOut() throws Exception {
    try (Segment segment = device.allocate(1);
        ChildJvm child =
            ChildJvm.start(List.of(), FloodingPeer.class, server.socket().toString(), "2")) {
      table.add(1, segment);
      assertThat(child.line()).isEqualTo("flooding");
      for (int i = 0; i < 100; i++) {
        try (PeerLink link = link()) {
          link.fetch(1, LIMIT).close();
        }
      }
      server.close();
    }
  }

  private static void assertRefused(final RawSocket raw, final Reason reason) {
    assertThat(raw.receive(Frame.Type.REFUSED).asReason()).isEqualTo(reason);
    assertThat(raw.receive()).isNull();
  }
}
