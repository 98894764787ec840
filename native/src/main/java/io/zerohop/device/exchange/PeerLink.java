package io.zerohop.device.exchange;

import io.zerohop.device.DeviceCode;
import io.zerohop.device.Message;
import io.zerohop.device.SegmentHandle;
import io.zerohop.device.exchange.ExchangeException.Reason;
import io.zerohop.device.posix.Deadline;
import io.zerohop.device.posix.Descriptor;
import io.zerohop.device.posix.FdHandle;
import io.zerohop.device.posix.FileStatus;
import io.zerohop.device.posix.NativeLibrary;
import io.zerohop.device.posix.PosixException;
import io.zerohop.device.posix.Sockets;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.EnumSet;
import java.util.List;
import java.util.Objects;
import java.util.Set;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import java.util.concurrent.locks.ReentrantLock;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * An open connection to a peer's {@link SegmentServer}. It is the peer's liveness as well: it stays
 * open for life, and when the peer's end closes, the link closes. Thread safe.
 */
public final class PeerLink implements AutoCloseable {
  private static final Logger LOG = LoggerFactory.getLogger(PeerLink.class);
  private static final long RETRY_NANOS = 1_000_000;

  /** In place of a segment's id where none is lent. */
  static final long NOT_LENT = 0;

  private static final Set<Frame.Type> ANSWERS =
      EnumSet.of(Frame.Type.SEGMENT, Frame.Type.GONE, Frame.Type.WITHHELD);

  private final String peerName;
  private final LinkSocket socket;
  private final FrameChannel channel;
  private final byte[] greeting;
  private final Proofs.Seals seals;
  private final int peerPid;
  private final ReentrantLock fetchLock = new ReentrantLock();

  /** What the peer was asked for and has not answered yet. With fetchLock. */
  private @Nullable Request unanswered;

  /** A loan that nobody here has, and that goes back before the next request. With fetchLock. */
  private long orphan = NOT_LENT;

  /** Requests so far, which is the number of the last one. With fetchLock. */
  private long requests;

  private final List<Runnable> callbacks = new ArrayList<>();
  private volatile boolean closed;

  private PeerLink(
      final String peerName,
      final LinkSocket socket,
      final FrameChannel channel,
      final byte[] greeting,
      final Proofs.Seals seals) {
    this.peerName = peerName;
    this.socket = socket;
    this.channel = channel;
    this.greeting = greeting;
    this.seals = seals;
    this.peerPid = (int) Sockets.peer(socket.fd());
  }

  /**
   * Connects, and proves both sides to one another.
   *
   * @param socketPath socket of the peer
   * @param selfName name of this process
   * @param expectedPeerName name under which the peer serves
   * @param secret the application's, at least 16 bytes
   * @param limit longest time for all of it
   * @throws ExchangeException if it cannot; the reason says why
   */
  public static PeerLink connect(
      final Path socketPath,
      final String selfName,
      final String expectedPeerName,
      final byte[] secret,
      final Duration limit) {
    NativeLibrary.require();
    SocketFolder.checkName(selfName);
    SocketFolder.checkName(expectedPeerName);
    final Proofs proofs = new Proofs(secret);
    final Deadline deadline = Deadline.in(limit);
    final LinkSocket socket = new LinkSocket(open(socketPath, deadline));
    boolean done = false;
    try {
      checkUser(socket, socketPath);
      final ProcessIdentity seen = processAt(socket, socketPath);
      final FrameChannel channel = new FrameChannel(socket.fd(), "peer " + expectedPeerName);
      final Frame.Hello hello = new Frame.Hello(Proofs.newNonce(), selfName, expectedPeerName);
      final PeerLink link = shakeHands(socket, channel, proofs, hello, seen, deadline);
      socket.hold(); // By the watch, which lets go of it when the link has ended.
      try {
        PeerWatch.shared().watch(link);
      } catch (final RuntimeException e) {
        socket.release();
        throw e;
      }
      done = true;
      return link;
    } finally {
      if (!done) {
        socket.release();
      }
    }
  }

  private static int open(final Path path, final Deadline deadline) {
    while (true) {
      try {
        return Sockets.connect(path.toString());
      } catch (final PosixException e) {
        if (e.errno() != PosixException.EAGAIN) {
          throw new ExchangeException(
              reasonOf(e.errno()),
              Message.of("cannot connect to a socket").at(path.toString()).because(e),
              e);
        }
        if (deadline.isOver()) {
          throw new ExchangeException(
              Reason.TIMEOUT,
              Message.of("a socket took no connection in time").at(path.toString()),
              e);
        }
        LockSupport.parkNanos(RETRY_NANOS); // Its backlog is full.
      }
    }
  }

  private static Reason reasonOf(final int errno) {
    switch (errno) {
      case PosixException.ENOENT:
      case PosixException.ENOTDIR:
        return Reason.ABSENT;
      case PosixException.ECONNREFUSED:
        return Reason.REFUSED;
      case PosixException.EACCES:
        return Reason.AUTHENTICATION;
      default:
        return Reason.PROTOCOL;
    }
  }

  private static void checkUser(final LinkSocket socket, final Path path) {
    final int uid = (int) (Sockets.peer(socket.fd()) >>> 32);
    if (uid != Descriptor.userId()) {
      throw new ExchangeException(
          Reason.AUTHENTICATION,
          Message.of("another user serves the socket").at(path + ", user " + uid));
    }
  }

  private static ProcessIdentity processAt(final LinkSocket socket, final Path path) {
    try {
      return ProcessIdentity.ofPeer(socket.fd());
    } catch (final PosixException e) {
      throw new ExchangeException(
          reasonOf(e.errno()),
          Message.of("cannot tell which process serves a socket").at(path.toString()).because(e),
          e);
    }
  }

  /**
   * Proves both sides to one another.
   *
   * @param seen what the kernel says of the process that serves the socket
   */
  private static PeerLink shakeHands(
      final LinkSocket socket,
      final FrameChannel channel,
      final Proofs proofs,
      final Frame.Hello hello,
      final ProcessIdentity seen,
      final Deadline deadline) {
    final String peerName = hello.server();
    channel.send(Frame.hello(hello), deadline);
    final Frame challenge = channel.receive(Frame.Type.CHALLENGE, deadline);
    final ProcessIdentity.Match match = challenge.challenger().match(seen);
    if (match == ProcessIdentity.Match.OTHER) {
      throw new ExchangeException(
          Reason.AUTHENTICATION,
          "the socket of peer "
              + peerName
              + " is served by process "
              + seen.pid()
              + ", which passes on what another one says");
    }
    final byte[] proof = proofs.ofClient(hello, challenge.payload());
    channel.send(new Frame(Frame.Type.ANSWER, proof), deadline);
    final byte[] welcome = channel.receive(Frame.Type.WELCOME, deadline).payload();
    final byte[] greeting = Arrays.copyOfRange(welcome, Frame.PROOF_BYTES, welcome.length);
    final byte[] expected = proofs.ofServer(hello, challenge.payload(), greeting);
    if (!Proofs.same(expected, Arrays.copyOf(welcome, Frame.PROOF_BYTES))) {
      throw new ExchangeException(
          Reason.AUTHENTICATION, "peer " + peerName + " does not know the application's secret");
    }
    if (match == ProcessIdentity.Match.UNKNOWN) {
      ProcessIdentity.warnOfUnknown();
    }
    final Proofs.Seals seals = proofs.seals(hello, challenge.payload(), greeting);
    return new PeerLink(peerName, socket, channel, greeting, seals);
  }

  /** What the peer's directory answered to this connection. A fresh array. */
  public byte[] greeting() {
    return greeting.clone();
  }

  /** Process id of the peer as this process sees it; 0 if it is in another PID namespace. */
  public int peerPid() {
    return peerPid;
  }

  /** Whether the connection is open; turns false promptly when the peer ends, however it ends. */
  public boolean alive() {
    return !closed;
  }

  /**
   * Runs the callback once when the link ends, for whatever reason; at once if it has ended. It
   * runs on the thread that ends the link, which may be the one that watches all links: it must not
   * wait.
   */
  public void onClosed(final Runnable callback) {
    synchronized (callbacks) {
      if (!closed) {
        callbacks.add(callback);
        return;
      }
    }
    callback.run();
  }

  /**
   * Asks for a segment. The caller owns the handle. A peer that says nothing may only have paused,
   * so the link stays, and while an answer is still due nobody waits for another.
   *
   * @param limit longest time
   * @return absent when the peer has no such segment any more
   * @throws ExchangeException (UNAVAILABLE) if this segment cannot be handed over now, or the peer
   *     does not answer in time, while the link stays as it is; (CLOSED, PROTOCOL, TIMEOUT,
   *     AUTHENTICATION) if the link has ended
   */
  public @Nullable SegmentHandle fetch(final long segmentId, final Duration limit) {
    final Loan answer = ask(new Request(Frame.Type.FETCH, segmentId), limit);
    return answer == null ? null : answer.handle();
  }

  /**
   * Asks for a segment to write to, which the peer counts as its own until it is {@link #giveBack
   * given back} or the link ends. A loan that comes after the limit is given back by the next
   * request.
   *
   * @param bytes the size that the segment is to have
   * @param limit longest time
   * @return absent when the peer lends none; the caller owns the handle
   * @throws ExchangeException as {@link #fetch}
   */
  public @Nullable Loan borrow(final long bytes, final Duration limit) {
    return ask(new Request(Frame.Type.BORROW, bytes), limit);
  }

  /**
   * Gives a borrowed segment back, which nobody here uses any more.
   *
   * @throws ExchangeException as {@link #fetch}; if the link goes on, the peer knows of it even so
   */
  public void giveBack(final long segmentId, final Duration limit) {
    ask(new Request(Frame.Type.RETURN, segmentId), limit);
  }

  /**
   * Asks for a segment to hold beyond the end of the peer.
   *
   * @return as {@link #fetch}; absent also if the peer may not leave it
   * @throws ExchangeException as {@link #fetch}
   */
  public @Nullable SegmentHandle keep(final long segmentId, final Duration limit) {
    final Loan answer = ask(new Request(Frame.Type.KEEP, segmentId), limit);
    return answer == null ? null : answer.handle();
  }

  /**
   * Tells the peer that a segment is held here.
   *
   * @throws ExchangeException as {@link #fetch}
   */
  public void kept(final long segmentId, final Duration limit) {
    ask(new Request(Frame.Type.KEPT, segmentId), limit);
  }

  /**
   * Tells the peer that a segment is not held here, and will not be for now.
   *
   * @throws ExchangeException as {@link #fetch}
   */
  public void unkept(final long segmentId, final Duration limit) {
    ask(new Request(Frame.Type.UNKEPT, segmentId), limit);
  }

  private @Nullable Loan ask(final Request request, final Duration limit) {
    final Deadline deadline = Deadline.in(limit);
    lockFetch(deadline);
    try {
      if (!socket.hold()) {
        throw new ExchangeException(Reason.CLOSED, "the link to peer " + peerName + " is closed");
      }
      boolean done = false;
      try {
        final Answer answer = exchange(request, deadline);
        done = true;
        return answer.segmentOrThrow();
      } finally {
        if (!done) {
          close(); // An answer that comes late would be taken for that to the next question.
        }
        socket.release();
      }
    } finally {
      fetchLock.unlock();
    }
  }

  private void lockFetch(final Deadline deadline) {
    try {
      if (!fetchLock.tryLock(deadline.remainingNanos(), TimeUnit.NANOSECONDS)) {
        throw new ExchangeException(
            Reason.UNAVAILABLE,
            "the connection to executor " + peerName + " stayed busy until the limit");
      }
    } catch (final InterruptedException e) {
      Thread.currentThread().interrupt();
      throw new ExchangeException(
          Reason.TIMEOUT, "interrupted while others used the link to peer " + peerName, e);
    }
  }

  /**
   * A segment that a peer has handed over.
   *
   * @param segmentId the peer's name for it
   * @param handle owned by who received it
   */
  public record Loan(long segmentId, SegmentHandle handle) {}

  /**
   * A request that a peer answers.
   *
   * @param subject the id of a segment, or the size of one
   */
  private record Request(Frame.Type type, long subject) {

    /** The id that an answer without a segment names. */
    long refusedId() {
      return type == Frame.Type.BORROW ? NOT_LENT : subject;
    }

    /** Whether a segment fits. */
    boolean fits(final Frame.SegmentInfo segment) {
      return switch (type) {
        case FETCH, KEEP -> segment.id() == subject;
        case BORROW -> segment.id() != NOT_LENT && segment.bytes() == subject;
        default -> false;
      };
    }

    Frame frame() {
      return Frame.ofId(type, subject);
    }

    @Override
    public String toString() {
      return switch (type) {
        case BORROW -> "a loan of " + subject + " bytes";
        case RETURN -> "the return of segment " + subject;
        default -> "segment " + subject;
      };
    }
  }

  /**
   * An answer that the protocol allows.
   *
   * @param segment absent if it is gone, or was not handed over
   * @param why it was not handed over, if that is the case
   */
  private record Answer(@Nullable Loan segment, @Nullable Message why) {
    @Nullable Loan segmentOrThrow() {
      if (why != null) {
        throw new ExchangeException(Reason.UNAVAILABLE, why);
      }
      return segment;
    }
  }

  private Answer exchange(final Request request, final Deadline deadline) {
    if (unanswered != null && !receivesLate()) {
      return new Answer(null, Message.of(silence()));
    }
    if (orphan != NOT_LENT) {
      final Request back = new Request(Frame.Type.RETURN, orphan);
      orphan = NOT_LENT;
      final Answer returned = send(back, deadline);
      if (returned.why() != null) {
        return returned;
      }
    }
    return send(request, deadline);
  }

  private Answer send(final Request request, final Deadline deadline) {
    requests++;
    channel.send(seals.seal(request.frame(), requests), deadline);
    unanswered = request;
    final Frame answer = receiveOrNull(deadline);
    if (answer == null) {
      return new Answer(null, Message.of(silence()));
    }
    unanswered = null;
    return answer(request, answer);
  }

  /** The next frame; absent if the peer says nothing until the deadline. */
  private @Nullable Frame receiveOrNull(final Deadline deadline) {
    try {
      return channel.receive(deadline);
    } catch (final ExchangeException e) {
      if (e.reason() == Reason.TIMEOUT) {
        return null;
      }
      throw e;
    }
  }

  /** Takes the answer that nobody waits for any more, if it has come. Does not wait. */
  private boolean receivesLate() {
    final Request late = Objects.requireNonNull(unanswered, "no request is unanswered");
    final Frame frame = receiveOrNull(Deadline.in(Duration.ZERO));
    if (frame == null) {
      return false;
    }
    unanswered = null;
    final Loan unwanted = answer(late, frame).segment();
    if (unwanted != null) {
      unwanted.handle().close();
      if (late.type() == Frame.Type.BORROW) {
        orphan = unwanted.segmentId();
      }
    }
    return true;
  }

  private String silence() {
    return "executor " + peerName + " has not answered the request for " + unanswered;
  }

  private Answer answer(final Request request, final Frame sealed) {
    int fd = channel.takeDescriptor();
    try {
      if (!ANSWERS.contains(sealed.type())) {
        throw unfit(request, sealed);
      }
      final Frame answer = seals.open(sealed, requests);
      if (answer.type() == Frame.Type.GONE && answer.asId() == request.refusedId() && fd < 0) {
        return new Answer(null, null);
      }
      if (answer.type() == Frame.Type.WITHHELD && answer.asId() == request.refusedId() && fd < 0) {
        return new Answer(
            null,
            Message.of("a peer could not export a segment")
                .at(place(request))
                .remedy("see the log of that executor"));
      }
      if (answer.type() == Frame.Type.SEGMENT) {
        final Frame.SegmentInfo segment = answer.asSegment();
        final boolean byFd = segment.kind() == SegmentHandle.Kind.POSIX_FD;
        if (request.fits(segment) && byFd && fd >= 0) {
          checkSent(segment, Descriptor.status(fd));
          final SegmentHandle handle = new FdHandle(fd, segment.bytes());
          fd = -1;
          return new Answer(new Loan(segment.id(), handle), null);
        }
        if (request.fits(segment) && byFd && fd == Sockets.LOST_DESCRIPTOR) {
          if (request.type() == Frame.Type.BORROW) {
            orphan = segment.id();
          }
          return new Answer(
              null,
              Message.of("the descriptor of a segment was lost")
                  .at(place(request))
                  .because("this process has reached its limit of open files")
                  .remedy("raise 'ulimit -n'"));
        }
        if (request.fits(segment) && request.type() == Frame.Type.FETCH && !byFd && fd < 0) {
          final SegmentHandle handle =
              new OpaqueHandle(segment.kind(), segment.bytes(), segment.opaque());
          return new Answer(new Loan(segment.id(), handle), null);
        }
      }
      throw unfit(request, answer);
    } finally {
      if (fd >= 0) {
        Descriptor.close(fd);
      }
    }
  }

  private String place(final Request request) {
    return request + " of executor " + peerName;
  }

  private ExchangeException unfit(final Request request, final Frame answer) {
    return new ExchangeException(
        Reason.PROTOCOL,
        "peer " + peerName + " answered " + request.type() + " by " + answer.type());
  }

  /** The owner says, under its seal, which file it sent. */
  private void checkSent(final Frame.SegmentInfo segment, final FileStatus received) {
    if (received.device() != segment.device() || received.inode() != segment.inode()) {
      throw new ExchangeException(
          Reason.AUTHENTICATION,
          "the descriptor of segment "
              + segment.id()
              + " is not the one that peer "
              + peerName
              + " sent");
    }
  }

  LinkSocket socket() {
    return socket;
  }

  /** Ends the connection; mapped memory stays. Idempotent. */
  @Override
  public void close() {
    final List<Runnable> toRun;
    synchronized (callbacks) {
      if (closed) {
        return;
      }
      closed = true;
      toRun = List.copyOf(callbacks);
      callbacks.clear();
    }
    socket.shutdown();
    socket.release();
    for (final Runnable callback : toRun) {
      try {
        callback.run();
      } catch (final RuntimeException e) {
        DeviceCode.LINK_CALLBACK_FAILED
            .says("a callback failed after the connection to a peer ended")
            .at("executor " + peerName)
            .warn(LOG, e);
      }
    }
  }

  @Override
  public String toString() {
    return "link to peer " + peerName;
  }
}
