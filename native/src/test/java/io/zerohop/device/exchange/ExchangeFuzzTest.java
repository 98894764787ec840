package io.zerohop.device.exchange;

import static org.assertj.core.api.Assertions.assertThat;

import io.zerohop.device.Leaks;
import io.zerohop.device.SegmentHandle;
import io.zerohop.device.exchange.ExchangeException.Reason;
import io.zerohop.device.posix.FdHandle;
import io.zerohop.device.posix.Memory;
import io.zerohop.device.posix.NativeLibrary;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Arrays;
import java.util.Random;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/**
 * Garbage, truncated and mutated frames: refused, nothing else. The cases are the same each time.
 */
final class ExchangeFuzzTest {
  private static final int SESSION_CASES = 110_000;
  private static final int DECODER_CASES = 50_000;
  private static final long SESSION_SEED = 20_261_120L;
  private static final long DECODER_SEED = 7;
  private static final int SOCKET_CASES = 5_000;
  private static final Proofs PROOFS = new Proofs(SegmentTable.SECRET);

  @BeforeEach
  void load() {
    NativeLibrary.require();
  }

  @Test
  void noBytesMakeASessionDoMoreThanRefuse() throws IOException {
    final Random random = new Random(SESSION_SEED);
    final FrameMutator mutator = new FrameMutator(random);
    final AtomicInteger openHandles = new AtomicInteger();
    int refused = 0;
    for (int i = 0; i < SESSION_CASES; i++) {
      final SegmentTable table = new SegmentTable().add(1, () -> new CountedHandle(openHandles));
      final ServerSession session =
          new ServerSession(PROOFS, "server", table, i, ProcessIdentity.self(), 1);
      final byte[] bad = badBytes(random, mutator, session, random.nextInt(3));
      final int welcomed = table.connected.get();
      refused += feed(random, session, bad) ? 1 : 0;
      session.end();
      session.end();
      assertThat(table.connected.get()).as("case %d", i).isEqualTo(welcomed);
      assertThat(table.disconnected.get()).as("case %d", i).isEqualTo(welcomed);
      assertThat(openHandles.get()).as("case %d", i).isZero();
    }
    assertThat(refused).isBetween(SESSION_CASES / 2, SESSION_CASES);
  }

  /** Brings the session to a state, and makes bytes that do not belong there. */
  private static byte[] badBytes(
      final Random random,
      final FrameMutator mutator,
      final ServerSession session,
      final int state) {
    final Frame.Hello hello = new Frame.Hello(mutator.bytes(Frame.NONCE_BYTES), "fuzz", "server");
    byte[] good = Frame.hello(hello.nonce(), "fuzz", "server").encode();
    byte[] challenge = new byte[0];
    if (state > 0) {
      challenge = reply(session, good).payload();
      good = new Frame(Frame.Type.ANSWER, PROOFS.ofClient(hello, challenge)).encode();
    }
    if (state > 1) {
      final Frame welcome = reply(session, good);
      assertThat(welcome.type()).isEqualTo(Frame.Type.WELCOME);
      final byte[] payload = welcome.payload();
      final byte[] greeting = Arrays.copyOfRange(payload, Frame.PROOF_BYTES, payload.length);
      final Frame fetch = Frame.ofId(Frame.Type.FETCH, random.nextInt(3));
      good = PROOFS.seals(hello, challenge, greeting).seal(fetch, 1).encode();
    }
    final byte[] base = random.nextInt(4) == 0 ? mutator.anyFrame().encode() : good;
    byte[] bad = mutator.mutate(base);
    while (state == 1 && new String(bad).startsWith(new String(good))) {
      bad = mutator.mutate(base); // A right answer with something behind it is a right answer.
    }
    return bad;
  }

  private static Frame reply(final ServerSession session, final byte[] bytes) {
    session.receive(bytes, 0, bytes.length);
    final FrameDecoder decoder = new FrameDecoder();
    final byte[] answer = session.next().bytes();
    decoder.append(answer, 0, answer.length);
    return decoder.next();
  }

  /** Feeds bytes in random pieces; true if they were refused. */
  private static boolean feed(
      final Random random, final ServerSession session, final byte[] bytes) {
    try {
      int at = 0;
      while (at < bytes.length) {
        final int room = session.room();
        assertThat(room).isPositive();
        final int count = Math.min(Math.min(room, 1 + random.nextInt(300)), bytes.length - at);
        session.receive(bytes, at, count);
        at += count;
        for (ServerSession.Reply r = session.next(); r != null; r = session.next()) {
          if (r.handle() != null) {
            r.handle().close();
          }
        }
      }
      return session.isIncomplete();
    } catch (final ExchangeException e) {
      assertThat(e.reason()).isIn(Reason.PROTOCOL, Reason.AUTHENTICATION);
      return true;
    }
  }

  @Test
  void noFrameOfAServerMakesAClientDoMoreThanRefuse() throws IOException {
    final Random random = new Random(DECODER_SEED);
    final FrameMutator mutator = new FrameMutator(random);
    int refused = 0;
    for (int i = 0; i < DECODER_CASES; i++) {
      final FrameDecoder decoder = new FrameDecoder();
      final byte[] bytes = mutator.mutate(mutator.anyFrame().encode());
      try {
        decoder.append(bytes, 0, Math.min(bytes.length, decoder.room()));
        for (Frame frame = decoder.next(); frame != null; frame = decoder.next()) {
          read(frame);
        }
        assertThat(decoder.room()).isPositive();
      } catch (final ExchangeException e) {
        assertThat(e.reason()).isEqualTo(Reason.PROTOCOL);
        refused++;
      }
    }
  }

  private static void read(final Frame frame) {
    switch (frame.type()) {
      case HELLO:
        assertThat(frame.asHello().client()).isNotEmpty();
        break;
      case SEGMENT:
        final int length = frame.payload().length - Frame.SEAL_BYTES;
        final byte[] content = Arrays.copyOf(frame.payload(), length);
        assertThat(new Frame(frame.type(), content).asSegment().bytes()).isPositive();
        break;
      case REFUSED:
        assertThat(frame.asReason()).isNotNull();
        break;
      default:
        assertThat(frame.payload().length)
            .isBetween(frame.type().minPayload, frame.type().maxPayload);
    }
  }

  @Test
  void theServerSurvivesItAll(@TempDir final Path scratch) {
    final Leaks leaks = new Leaks();
    final Random random = new Random(99);
    final FrameMutator mutator = new FrameMutator(random);
    final SegmentTable table = new SegmentTable().add(1, ExchangeFuzzTest::newMemory);
    try (SocketFolder folder = SocketFolder.open(scratch.resolve("s"), "app");
        SegmentServer server =
            new SegmentServer(
                folder, "server", SegmentTable.SECRET, table, SegmentServer.Limits.DEFAULT)) {
      server.start();
      for (int i = 0; i < SOCKET_CASES; i++) {
        attack(random, mutator, server.socket());
      }
      try (PeerLink link =
              PeerLink.connect(
                  server.socket(), "good", "server", SegmentTable.SECRET, Duration.ofSeconds(60));
          SegmentHandle handle = link.fetch(1, Duration.ofSeconds(60))) {
        assertThat(handle.bytes()).isEqualTo(4096);
        assertThat(link.greeting()).isEqualTo(SegmentTable.greetingFor("good"));
      }
    }
    assertThat(table.connected.get()).isEqualTo(table.disconnected.get()).isGreaterThan(1);
    leaks.check();
  }

  private static void attack(final Random random, final FrameMutator mutator, final Path socket) {
    try (RawSocket raw = RawSocket.connect(socket)) {
      byte[] good = Frame.hello(mutator.bytes(Frame.NONCE_BYTES), "fuzz", "server").encode();
      if (random.nextInt(3) == 0) {
        raw.shakeHands("fuzz", "server");
        good = raw.sealed(Frame.ofId(Frame.Type.FETCH, random.nextInt(3)));
      }
      final ByteArrayOutputStream bytes = new ByteArrayOutputStream();
      for (int i = random.nextInt(3); i > 0; i--) {
        bytes.writeBytes(good);
      }
      bytes.writeBytes(mutator.mutate(good));
      raw.send(bytes.toByteArray(), random.nextInt(5) == 0 ? 0 : -1);
      if (random.nextInt(20) == 0) {
        raw.send(mutator.anyFrame()).send(new Frame(Frame.Type.CHALLENGE, new byte[32]));
        while (raw.receive() != null) {
          continue; // Until it is refused.
        }
      }
    }
  }

  private static SegmentHandle newMemory() {
    final int fd = Memory.create("zerohop-fuzz");
    Memory.resize(fd, 4096);
    Memory.seal(fd, false);
    return new FdHandle(fd, 4096);
  }

  /** A handle that tells whether it was closed. */
  private static final class CountedHandle implements SegmentHandle {
    private final AtomicInteger open;
    private boolean closed;

    CountedHandle(final AtomicInteger open) {
      this.open = open;
      open.incrementAndGet();
    }

    @Override
    public Kind kind() {
      return Kind.FABRIC;
    }

    @Override
    public long bytes() {
      return 4096;
    }

    @Override
    public int fd() {
      throw new IllegalStateException("no descriptor");
    }

    @Override
    public byte[] opaque() {
      return new byte[Frame.OPAQUE_BYTES];
    }

    @Override
    public void close() {
      if (!closed) {
        closed = true;
        open.decrementAndGet();
      }
    }
  }
}
