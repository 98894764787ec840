package io.zerohop.device.exchange;

import io.zerohop.device.DeviceCode;
import io.zerohop.device.Message;
import io.zerohop.device.SegmentHandle;
import io.zerohop.device.exchange.ExchangeException.Reason;
import io.zerohop.device.posix.Deadline;
import io.zerohop.device.posix.Descriptor;
import io.zerohop.device.posix.NativeLibrary;
import io.zerohop.device.posix.PosixException;
import io.zerohop.device.posix.Sockets;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import java.util.concurrent.locks.ReentrantLock;
import java.util.function.Supplier;
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

  private final String peerName;
  private final LinkSocket socket;
  private final byte[] greeting;
  private final PeerRequests requests;
  private final ProcessIdentity peer;
  private final ReentrantLock fetchLock = new ReentrantLock();

  private final List<Runnable> callbacks = new ArrayList<>();
  private volatile boolean closed;

  private PeerLink(
      final String peerName,
      final LinkSocket socket,
      final byte[] greeting,
      final PeerRequests requests,
      final ProcessIdentity peer) {
    this.peerName = peerName;
    this.socket = socket;
    this.greeting = greeting;
    this.requests = requests;
    this.peer = peer;
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
    return new PeerLink(
        peerName, socket, greeting, new PeerRequests(peerName, channel, seals), seen);
  }

  /** What the peer's directory answered to this connection. A fresh array. */
  public byte[] greeting() {
    return greeting.clone();
  }

  /** Returns whether this process sees which process the peer is, and would see its end. */
  public boolean seesProcess() {
    return peer.start() > 0;
  }

  /** Returns whether this process saw that of the peer, which has ended. A zombie has. */
  public boolean isProcessGone() {
    return seesProcess() && ProcessIdentity.isGone(peer.pid(), peer.start());
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
   * so the link stays. While an answer is still due, the next request waits for it first, but not
   * if somebody has waited for it as long already: it then fails at once.
   *
   * @param limit longest time
   * @return absent when the peer has no such segment any more
   * @throws ExchangeException (UNAVAILABLE) if this segment cannot be handed over now, or the peer
   *     does not answer in time, while the link stays as it is; (CLOSED, PROTOCOL, TIMEOUT,
   *     AUTHENTICATION) if the link has ended
   */
  public @Nullable SegmentHandle fetch(final long segmentId, final Duration limit) {
    final Loan answer = ask(new PeerRequests.Request(Frame.Type.FETCH, segmentId), limit);
    return answer == null ? null : answer.handle();
  }

  /**
   * Asks for a segment to write to, which the peer counts as its own until it is {@link #giveBack
   * given back} or the link ends. A loan that comes after the limit is given back by the next
   * request, or by {@link #settle}.
   *
   * @param bytes the size that the segment is to have
   * @param limit longest time
   * @return absent when the peer lends none; the caller owns the handle
   * @throws ExchangeException as {@link #fetch}
   */
  public @Nullable Loan borrow(final long bytes, final Duration limit) {
    return ask(new PeerRequests.Request(Frame.Type.BORROW, bytes), limit);
  }

  /**
   * Gives a borrowed segment back, which nobody here uses any more. The peer may hear of it only
   * later, if it is silent or the link is in use: by the next request, or by {@link #settle}. The
   * end of the link returns it, too.
   *
   * @param limit longest time, if the peer does not answer
   */
  public void giveBack(final long segmentId, final Duration limit) {
    requests.owe(segmentId);
    settle(limit);
  }

  /**
   * Asks for a segment to hold beyond the end of the peer.
   *
   * @return as {@link #fetch}; absent also if the peer may not leave it
   * @throws ExchangeException as {@link #fetch}
   */
  public @Nullable SegmentHandle keep(final long segmentId, final Duration limit) {
    final Loan answer = ask(new PeerRequests.Request(Frame.Type.KEEP, segmentId), limit);
    return answer == null ? null : answer.handle();
  }

  /**
   * Tells the peer that a segment is held here.
   *
   * @throws ExchangeException as {@link #fetch}
   */
  public void kept(final long segmentId, final Duration limit) {
    ask(new PeerRequests.Request(Frame.Type.KEPT, segmentId), limit);
  }

  /**
   * Tells the peer that a segment is not held here, and will not be for now.
   *
   * @throws ExchangeException as {@link #fetch}
   */
  public void unkept(final long segmentId, final Duration limit) {
    ask(new PeerRequests.Request(Frame.Type.UNKEPT, segmentId), limit);
  }

  /**
   * Takes an answer that came late off the link, and tells the peer of what was given back and has
   * not been told yet. Waits only for answers to that. Does nothing while others use the link, or
   * if it has ended, which returns all. To be called now and then while a link is open: nothing
   * else gives late loans back if there are no more requests.
   *
   * @param limit longest time, if the peer does not answer
   */
  public void settle(final Duration limit) {
    if (fetchLock.tryLock()) {
      try {
        holding(() -> requests.settle(limit, Deadline.in(limit)));
      } catch (final ExchangeException e) {
        LOG.debug("{} has ended, and with it what was lent", this, e);
      } finally {
        fetchLock.unlock();
      }
    }
  }

  /** Whether the peer did not answer within the limit, and has not since, as far as is known. */
  public boolean isSilent() {
    return requests.isSilent();
  }

  private @Nullable Loan ask(final PeerRequests.Request request, final Duration limit) {
    final Deadline deadline = Deadline.in(limit);
    lockFetch(deadline);
    try {
      return holding(() -> requests.ask(request, limit, deadline)).segmentOrThrow();
    } finally {
      fetchLock.unlock();
    }
  }

  /** Does what uses the socket, and closes the link if that fails. With fetchLock. */
  private <T> T holding(final Supplier<T> use) {
    if (!socket.hold()) {
      throw new ExchangeException(Reason.CLOSED, "the link to peer " + peerName + " is closed");
    }
    boolean done = false;
    try {
      final T result = use.get();
      done = true;
      return result;
    } finally {
      if (!done) {
        close(); // An answer that comes late would be taken for that to the next question.
      }
      socket.release();
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

  LinkSocket socket() {
    return socket;
  }

  /** Ends the connection; mapped memory stays. Idempotent. */
  @Override
  public void close() {
    synchronized (callbacks) {
      if (closed) {
        return;
      }
      closed = true; // Nobody adds a callback from here on, so no copy needs memory.
    }
    socket.shutdown();
    socket.release();
    for (final Runnable callback : callbacks) {
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

  /**
   * A socket that several threads use. A shutdown wakes them all at once, but the descriptor is
   * closed only when the last one has released it, so that none touches another's descriptor.
   * Thread safe.
   */
  static final class LinkSocket {
    private final int fd;
    private int holders = 1;
    private boolean down;

    /** Takes over a descriptor; the creator is the first holder. */
    LinkSocket(final int fd) {
      this.fd = fd;
    }

    /** The descriptor, for holders only. */
    int fd() {
      return fd;
    }

    /** Becomes a holder; false when the socket was shut down. */
    synchronized boolean hold() {
      if (down) {
        return false;
      }
      holders++;
      return true;
    }

    /** Ceases to be a holder. */
    synchronized void release() {
      holders--;
      if (holders == 0) {
        down = true;
        Descriptor.close(fd);
      }
    }

    /** Ends the connection in both directions. */
    synchronized void shutdown() {
      if (!down) {
        down = true;
        Sockets.shutdown(fd);
      }
    }
  }
}
