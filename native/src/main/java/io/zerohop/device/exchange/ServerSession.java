package io.zerohop.device.exchange;

import io.zerohop.device.DeviceCode;
import io.zerohop.device.SegmentHandle;
import io.zerohop.device.Transitions;
import io.zerohop.device.exchange.ExchangeException.Reason;
import io.zerohop.device.exchange.Frame.FrameDecoder;
import io.zerohop.device.exchange.PeerLink.Loan;
import io.zerohop.device.exchange.SegmentServer.PeerInfo;
import io.zerohop.device.exchange.SegmentServer.SegmentDirectory;
import java.util.EnumSet;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.function.LongConsumer;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * One connection as its server sees it, without the socket: bytes in, replies out. Used by one
 * thread.
 *
 * <pre>
 *   HELLO -> CHALLENGE      ANSWER -> WELCOME      any number of times:
 *                                                  FETCH, BORROW -> SEGMENT | GONE | WITHHELD
 *                                                  KEEP -> SEGMENT | GONE | WITHHELD
 *                                                  RETURN, KEPT, UNKEPT -> GONE
 * </pre>
 */
final class ServerSession {
  private static final Logger LOG = LoggerFactory.getLogger(ServerSession.class);
  private static final Set<Frame.Type> REQUESTS =
      EnumSet.of(
          Frame.Type.FETCH,
          Frame.Type.BORROW,
          Frame.Type.RETURN,
          Frame.Type.KEEP,
          Frame.Type.KEPT,
          Frame.Type.UNKEPT);

  /** A frame to send. Whoever takes it closes the handle, if there is one, once it was sent. */
  record Reply(byte[] bytes, @Nullable SegmentHandle handle) {}

  /** The peer's progress: one step after the other, and the end is possible at each. */
  enum State {
    /** Nothing was answered; HELLO is due. */
    NEW,

    /** CHALLENGE was answered; ANSWER is due. */
    CHALLENGED,

    /**
     * The peer has proved itself and the directory knows of it; requests are due, any number of
     * them.
     */
    OPEN,

    /** The connection is gone. */
    ENDED;

    static final Transitions<State> TRANSITIONS =
        new Transitions<>(
            Map.of(
                NEW, Set.of(CHALLENGED, ENDED),
                CHALLENGED, Set.of(OPEN, ENDED),
                OPEN, Set.of(ENDED)));
  }

  private final FrameDecoder decoder = new FrameDecoder();
  private final Proofs proofs;
  private final String serverName;
  private final SegmentDirectory directory;
  private final long connectionId;
  private final ProcessIdentity seen;
  private final int uid;
  private State state = State.NEW;

  /** Received, and answered by the challenge: both are there from CHALLENGED on. */
  private Frame.@Nullable Hello hello;

  private byte @Nullable [] challenge;

  /** There once the session is OPEN. */
  private Proofs.@Nullable Seals seals;

  private long requests;

  /** There while the directory knows of the peer. */
  private @Nullable PeerInfo peer;

  private boolean hasWithheld;

  /**
   * @param seen what the kernel says of the peer's process
   * @param uid the peer's user
   */
  ServerSession(
      final Proofs proofs,
      final String serverName,
      final SegmentDirectory directory,
      final long connectionId,
      final ProcessIdentity seen,
      final int uid) {
    this.proofs = proofs;
    this.serverName = serverName;
    this.directory = directory;
    this.connectionId = connectionId;
    this.seen = seen;
    this.uid = uid;
  }

  /** Whether the peer has proved itself. */
  boolean isOpen() {
    return state == State.OPEN;
  }

  /** Process id of the peer as this process sees it; 0 if it is in another PID namespace. */
  int pid() {
    return (int) seen.pid();
  }

  /** Whether the stream stops inside a frame or inside the handshake. */
  boolean isIncomplete() {
    return decoder.isPartial() || state == State.CHALLENGED;
  }

  int room() {
    return decoder.room();
  }

  void receive(final byte[] bytes, final int offset, final int count) {
    decoder.append(bytes, offset, count);
  }

  /**
   * Handles the next frame, if a whole one was received.
   *
   * @return the reply; absent when more bytes are needed
   * @throws ExchangeException if the connection must be refused
   */
  @Nullable Reply next() {
    final Frame frame = decoder.next();
    if (frame == null) {
      return null;
    }
    switch (state) {
      case NEW:
        expect(frame, Frame.Type.HELLO);
        return challenge(frame);
      case CHALLENGED:
        expect(frame, Frame.Type.ANSWER);
        return welcome(frame);
      case OPEN:
        if (!REQUESTS.contains(frame.type())) {
          throw new ExchangeException(Reason.PROTOCOL, "a " + frame.type() + " frame as a request");
        }
        requests++;
        final Proofs.Seals open = Objects.requireNonNull(seals, "an open session has seals");
        return answer(open, open.open(frame, requests));
      default:
        throw new ExchangeException(Reason.CLOSED, "a frame came after the end of the session");
    }
  }

  private static void expect(final Frame frame, final Frame.Type expected) {
    if (frame.type() != expected) {
      throw new ExchangeException(
          Reason.PROTOCOL, "a " + frame.type() + " frame where " + expected + " was due");
    }
  }

  private Reply challenge(final Frame frame) {
    final Frame.Hello received = frame.asHello();
    hello = received;
    if (!received.server().equals(serverName)) {
      throw new ExchangeException(Reason.AUTHENTICATION, "the peer expects another executor");
    }
    if (received.process().match(seen) == ProcessIdentity.Match.OTHER) {
      throw new ExchangeException(
          Reason.AUTHENTICATION, "the process relays the messages of another one");
    }
    final Frame reply = Frame.challenge(Proofs.newNonce(), ProcessIdentity.self());
    challenge = reply.payload();
    become(State.CHALLENGED);
    return new Reply(reply.encode(), null);
  }

  private Reply welcome(final Frame frame) {
    final Frame.Hello answered = Objects.requireNonNull(hello, "no HELLO came");
    final byte[] sent = Objects.requireNonNull(challenge, "no CHALLENGE was sent");
    if (!Proofs.same(proofs.ofClient(answered, sent), frame.payload())) {
      throw new ExchangeException(
          Reason.AUTHENTICATION, "the peer does not know the application's secret");
    }
    if (answered.process().match(seen) == ProcessIdentity.Match.UNKNOWN) {
      ProcessIdentity.warnOfUnknown();
    }
    final PeerInfo connecting = new PeerInfo(connectionId, answered.client(), pid(), uid);
    final byte[] greeting = directory.connected(connecting);
    peer = connecting;
    become(State.OPEN);
    if (greeting.length > Frame.MAX_GREETING_BYTES) {
      throw new IllegalStateException("a greeting of " + greeting.length + " bytes");
    }
    seals = proofs.seals(answered, sent, greeting);
    final byte[] proof = proofs.ofServer(answered, sent, greeting);
    return new Reply(Frame.welcome(proof, greeting).encode(), null);
  }

  private Reply answer(final Proofs.Seals seals, final Frame request) {
    final PeerInfo asking = Objects.requireNonNull(peer, "an open session has a peer");
    switch (request.type()) {
      case BORROW:
        final long bytes = request.asSize();
        return handOverLoan(
            seals,
            PeerRequests.NOT_LENT,
            () -> directory.lend(asking, bytes),
            lent -> directory.returned(asking, lent));
      case RETURN:
        directory.returned(asking, request.asId());
        return sealed(seals, Frame.ofId(Frame.Type.GONE, request.asId()), null);
      case KEPT:
        directory.kept(asking, request.asId());
        return sealed(seals, Frame.ofId(Frame.Type.GONE, request.asId()), null);
      case UNKEPT:
        directory.unkept(asking, request.asId());
        return sealed(seals, Frame.ofId(Frame.Type.GONE, request.asId()), null);
      case KEEP:
        return handOver(seals, request.asId(), () -> directory.keep(asking, request.asId()));
      default:
        return handOver(seals, request.asId(), () -> directory.export(asking, request.asId()));
    }
  }

  private Reply handOver(
      final Proofs.Seals seals,
      final long segmentId,
      final Supplier<@Nullable SegmentHandle> exporter) {
    return handOverLoan(
        seals,
        segmentId,
        () -> {
          final SegmentHandle handle = exporter.get();
          return handle == null ? null : new Loan(segmentId, handle);
        },
        exported -> {});
  }

  /**
   * What cannot be exported now, as when this process is out of descriptors, is refused alone: the
   * end of the connection would end every lease of the peer.
   *
   * @param refusedId named by the answer if there is no segment
   * @param undo takes the id of a segment that cannot be sent
   */
  private Reply handOverLoan(
      final Proofs.Seals seals,
      final long refusedId,
      final Supplier<@Nullable Loan> exporter,
      final LongConsumer undo) {
    Loan exported = null;
    try {
      exported = exporter.get();
      if (exported == null) {
        return sealed(seals, Frame.ofId(Frame.Type.GONE, refusedId), null);
      }
      final SegmentHandle handle = exported.handle();
      return sealed(seals, Frame.segment(exported.segmentId(), handle), handle);
    } catch (final RuntimeException e) {
      if (exported != null) {
        try {
          undo.accept(exported.segmentId());
        } finally {
          exported.handle().close();
        }
      }
      if (!hasWithheld) {
        hasWithheld = true;
        DeviceCode.SEGMENT_WITHHELD
            .says("cannot export a segment to a peer, which reads it by the fallback (logged once)")
            .at(serverName + " to " + this)
            .warn(LOG, e);
      }
      return sealed(seals, Frame.ofId(Frame.Type.WITHHELD, refusedId), null);
    }
  }

  private Reply sealed(
      final Proofs.Seals seals, final Frame frame, final @Nullable SegmentHandle handle) {
    return new Reply(seals.seal(frame, requests).encode(), handle);
  }

  /** The connection ended; tells the directory if it knows of it. Idempotent. */
  void end() {
    if (state == State.ENDED) {
      return;
    }
    become(State.ENDED);
    final PeerInfo leaving = peer;
    peer = null;
    if (leaving != null) {
      directory.disconnected(leaving);
    }
  }

  private void become(final State next) {
    state = State.TRANSITIONS.go(state, next, this);
  }

  @Override
  public String toString() {
    return (peer == null ? "unknown peer" : "peer " + peer.name())
        + " (uid "
        + uid
        + ", pid "
        + pid()
        + ")";
  }
}
