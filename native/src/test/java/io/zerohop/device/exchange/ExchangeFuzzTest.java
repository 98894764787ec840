package io.zerohop.device.exchange;

import static org.assertj.core.api.Assertions.assertThat;

import com.code_intelligence.jazzer.junit.FuzzTest;
import io.zerohop.device.Fuzz;
import io.zerohop.device.Leaks;
import io.zerohop.device.SegmentHandle;
import io.zerohop.device.exchange.ExchangeException.Reason;
import io.zerohop.device.exchange.Frame.FrameDecoder;
import io.zerohop.device.posix.FdHandle;
import io.zerohop.device.posix.Memory;
import io.zerohop.device.posix.NativeLibrary;
import java.io.ByteArrayOutputStream;
import java.nio.ByteBuffer;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Arrays;
import java.util.Random;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.stream.Stream;
import org.junit.jupiter.api.Named;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.MethodSource;

/** Frames that a peer may send: taken or refused, nothing else. */
final class ExchangeFuzzTest {
  private static final Proofs PROOFS = new Proofs(SegmentTable.SECRET);

  /** Before the bytes of a session: how far it has come, and in which pieces they are read. */
  private static final int SESSION_BYTES = 2;

  /** The handshake, an expected proof, and a connection, on which requests are sealed or not. */
  private static final int STATES = 4;

  private static final int SEALS = 3;

  /** Kinds of requests, by two bits of their subjects. */
  private static final Frame.Type[] REQUESTS = {
    Frame.Type.FETCH, Frame.Type.BORROW, Frame.Type.RETURN, Frame.Type.FETCH
  };

  static {
    // Before the seeds, which name this process.
    NativeLibrary.require();
  }

  private static byte[] bytes(final Random random, final int length) {
    final byte[] bytes = new byte[length];
    random.nextBytes(bytes);
    return bytes;
  }

  /** Makes a well-formed frame of any type. */
  private static byte[] frame(final Random random) {
    final Frame frame =
        switch (Frame.Type.values()[random.nextInt(Frame.Type.values().length)]) {
          case HELLO ->
              Frame.hello(
                  bytes(random, Frame.NONCE_BYTES), "client-" + random.nextInt(9), "server");
          case CHALLENGE ->
              Frame.challenge(bytes(random, Frame.NONCE_BYTES), ProcessIdentity.self());
          case ANSWER -> new Frame(Frame.Type.ANSWER, bytes(random, Frame.PROOF_BYTES));
          case WELCOME ->
              Frame.welcome(
                  bytes(random, Frame.PROOF_BYTES),
                  bytes(random, random.nextInt(Frame.MAX_GREETING_BYTES + 1)));
          case FETCH -> sealed(random, Frame.ofId(Frame.Type.FETCH, random.nextInt(4)));
          case SEGMENT ->
              sealed(
                  random,
                  Frame.segment(
                      random.nextInt(4),
                      new OpaqueHandle(
                          SegmentHandle.Kind.FABRIC, 1L << random.nextInt(40), bytes(random, 64))));
          case GONE -> sealed(random, Frame.ofId(Frame.Type.GONE, random.nextLong()));
          case BORROW -> sealed(random, Frame.borrow(random.nextLong()));
          case RETURN -> sealed(random, Frame.ofId(Frame.Type.RETURN, random.nextInt(4)));
          case WITHHELD -> sealed(random, Frame.ofId(Frame.Type.WITHHELD, random.nextLong()));
          default -> Frame.refused(Reason.BUSY);
        };
    return frame.encode();
  }

  /** Returns the frame with some seal or other. */
  private static Frame sealed(final Random random, final Frame frame) {
    final byte[] content = frame.payload();
    final byte[] payload = bytes(random, content.length + Frame.SEAL_BYTES);
    System.arraycopy(content, 0, payload, 0, content.length);
    return new Frame(frame.type(), payload);
  }

  /** Makes a frame for a session, which fits its state or not. */
  private static byte[] session(final Random random) {
    final byte[] frame = frame(random);
    final byte[] bytes = new byte[SESSION_BYTES + frame.length];
    bytes[0] = (byte) random.nextInt(STATES);
    bytes[1] = (byte) random.nextInt();
    System.arraycopy(frame, 0, bytes, SESSION_BYTES, frame.length);
    return bytes;
  }

  static Stream<Arguments> frames() {
    return Fuzz.seeds(ExchangeFuzzTest::frame);
  }

  static Stream<Arguments> sessions() {
    return Fuzz.seeds(ExchangeFuzzTest::session);
  }

  /**
   * Whatever comes in whichever state, the session refuses it or serves it: nobody is welcomed
   * without a proof, and each handle is closed.
   */
  @MethodSource("sessions")
  @FuzzTest
  void framesToAnOwner(final byte[] bytes) {
    if (bytes.length < SESSION_BYTES) {
      return;
    }
    final AtomicInteger openHandles = new AtomicInteger();
    final SegmentTable table = new SegmentTable().add(1, () -> new CountedHandle(openHandles));
    final ServerSession session =
        new ServerSession(PROOFS, "server", table, 1, ProcessIdentity.self(), 1);
    final int state = Math.floorMod(bytes[0], STATES);
    final Proofs.Seals seals = bring(session, state);
    final int welcomed = table.connected.get();
    final byte[] sent = Arrays.copyOfRange(bytes, SESSION_BYTES, bytes.length);
    feed(session, state == SEALS ? requests(seals, sent) : sent, 1 + (bytes[1] & 0xFF));
    session.end();
    session.end();
    assertThat(table.connected.get()).isEqualTo(welcomed);
    assertThat(table.disconnected.get()).isEqualTo(welcomed);
    assertThat(openHandles.get()).isZero();
  }

  /** Leads the handshake so far; returns the seals of a connection, or null. */
  private static Proofs.Seals bring(final ServerSession session, final int state) {
    if (state == 0) {
      return null;
    }
    final Frame.Hello hello = new Frame.Hello(new byte[Frame.NONCE_BYTES], "fuzz", "server");
    final byte[] challenge = reply(session, Frame.hello(hello).encode()).payload();
    if (state == 1) {
      return null;
    }
    final Frame answer = new Frame(Frame.Type.ANSWER, PROOFS.ofClient(hello, challenge));
    final Frame welcome = reply(session, answer.encode());
    assertThat(welcome.type()).isEqualTo(Frame.Type.WELCOME);
    final byte[] payload = welcome.payload();
    final byte[] greeting = Arrays.copyOfRange(payload, Frame.PROOF_BYTES, payload.length);
    return PROOFS.seals(hello, challenge, greeting);
  }

  /** Returns sealed requests for the segments whose ids or sizes these bytes are. */
  private static byte[] requests(final Proofs.Seals seals, final byte[] ids) {
    final ByteArrayOutputStream requests = new ByteArrayOutputStream();
    final ByteBuffer from = ByteBuffer.wrap(ids);
    for (long number = 1; from.remaining() >= Long.BYTES; number++) {
      final long subject = from.getLong();
      final Frame request = Frame.ofId(REQUESTS[(int) (subject >>> 32) & 3], subject);
      requests.writeBytes(seals.seal(request, number).encode());
    }
    return requests.toByteArray();
  }

  private static Frame reply(final ServerSession session, final byte[] bytes) {
    session.receive(bytes, 0, bytes.length);
    final FrameDecoder decoder = new FrameDecoder();
    final byte[] answer = session.next().bytes();
    decoder.append(answer, 0, answer.length);
    return decoder.next();
  }

  /** Feeds bytes in pieces until they end or are refused. */
  private static void feed(final ServerSession session, final byte[] bytes, final int piece) {
    try {
      int at = 0;
      while (at < bytes.length) {
        final int room = session.room();
        assertThat(room).isPositive();
        final int count = Math.min(Math.min(room, piece), bytes.length - at);
        session.receive(bytes, at, count);
        at += count;
        for (ServerSession.Reply r = session.next(); r != null; r = session.next()) {
          if (r.handle() != null) {
            r.handle().close();
          }
        }
      }
    } catch (final ExchangeException e) {
      assertThat(e.reason()).isIn(Reason.PROTOCOL, Reason.AUTHENTICATION);
    }
  }

  /** Whatever an owner sends, its reader refuses it or takes it within its bounds. */
  @MethodSource("frames")
  @FuzzTest
  void framesToAReader(final byte[] bytes) {
    decode(bytes);
  }

  /** Returns whether bytes are refused. */
  private static boolean decode(final byte[] bytes) {
    final FrameDecoder decoder = new FrameDecoder();
    try {
      decoder.append(bytes, 0, Math.min(bytes.length, decoder.room()));
      for (Frame frame = decoder.next(); frame != null; frame = decoder.next()) {
        read(frame);
      }
      assertThat(decoder.room()).isPositive();
      return false;
    } catch (final ExchangeException e) {
      assertThat(e.reason()).isEqualTo(Reason.PROTOCOL);
      return true;
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
      case BORROW:
        readSize(frame);
        break;
      case REFUSED:
        assertThat(frame.asReason()).isNotNull();
        break;
      default:
        assertThat(frame.payload().length)
            .isBetween(frame.type().minPayload, frame.type().maxPayload);
    }
  }

  /** A size of none is refused by the session, behind the seal. */
  private static void readSize(final Frame frame) {
    try {
      assertThat(frame.asSize()).isPositive();
    } catch (final ExchangeException e) {
      assertThat(frame.asId()).isNotPositive();
    }
  }

  @Test
  void wellFormedFramesAreTakenAndDamagedOnesRefused() {
    for (final byte[] frame : Fuzz.good(ExchangeFuzzTest::frame)) {
      assertThat(decode(frame)).isFalse();
      for (int i = 0; i < Frame.HEADER_BYTES - 1; i++) { // Behind them, a length may be right.
        final byte[] bad = frame.clone();
        bad[i] ^= (byte) 0x80;
        assertThat(decode(bad)).as("byte %d of the header", i).isTrue();
      }
    }
  }

  /** Each of these connections ends; the server serves the next one, and keeps nothing of it. */
  @Test
  void aServerSurvivesThemAll(@TempDir final Path scratch) {
    final Leaks leaks = new Leaks();
    final Random random = new Random(99);
    final SegmentTable table = new SegmentTable().add(1, ExchangeFuzzTest::newMemory);
    try (SocketFolder folder = SocketFolder.open(scratch.resolve("s"), "app");
        SegmentServer server =
            new SegmentServer(
                folder, "server", SegmentTable.SECRET, table, SegmentServer.Limits.DEFAULT)) {
      server.start();
      frames().forEach(seed -> attack(random, frame(seed), server.socket()));
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

  private static byte[] frame(final Arguments seed) {
    return (byte[]) ((Named<?>) seed.get()[0]).getPayload();
  }

  /** Sends it before the handshake and behind it, with a descriptor and without. */
  private static void attack(final Random random, final byte[] bytes, final Path socket) {
    for (final boolean connected : new boolean[] {false, true}) {
      for (final int passed : new int[] {-1, 0}) {
        try (RawSocket raw = RawSocket.connect(socket)) {
          if (connected) {
            raw.shakeHands("fuzz", "server");
          }
          raw.send(bytes, passed);
          if (random.nextBoolean()) {
            raw.send(frame(random), -1);
            raw.send(Frame.challenge(new byte[Frame.NONCE_BYTES], ProcessIdentity.self()));
            raw.send(new byte[2 * Frame.MAX_FRAME_BYTES], -1);
            while (raw.receive() != null) {
              continue; // Until it is refused.
            }
          }
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
