package io.zerohop.device.exchange;

import io.zerohop.device.DeviceCode;
import io.zerohop.device.SegmentHandle;
import io.zerohop.device.Transitions;
import io.zerohop.device.ZerohopException;
import io.zerohop.device.exchange.ExchangeException.Reason;
import io.zerohop.device.exchange.PeerLink.Loan;
import io.zerohop.device.posix.Deadline;
import io.zerohop.device.posix.Descriptor;
import io.zerohop.device.posix.PosixException;
import io.zerohop.device.posix.Sockets;
import io.zerohop.device.posix.Threads;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Hands this process's segments to peers of the same user that know the secret. One daemon thread
 * serves all connections; no peer, however it behaves, makes it wait or end, or keeps those who
 * know the secret out. The protocol is drawn in docs/exchange.md; {@link PeerLink} is the peer's
 * side of it.
 *
 * <p>{@link #start} and {@link #close} are thread safe. A server is used once.
 */
public final class SegmentServer implements AutoCloseable {
  /** Longest greeting in bytes. */
  public static final int MAX_GREETING_BYTES = Frame.MAX_GREETING_BYTES;

  private static final Logger LOG = LoggerFactory.getLogger(SegmentServer.class);
  private static final int BACKLOG = 256;
  private static final int FIXED_ENTRIES = 2;
  private static final Duration STALL_LIMIT = Duration.ofSeconds(10);
  private static final Duration STOP_LIMIT = Duration.ofSeconds(10);
  private static final int LONGEST_POLL_MILLIS = 1_000;
  private static final int ACCEPT_PAUSE_MILLIS = 100;

  /**
   * A handshake takes three rounds: who is about to prove itself is through before as many others
   * came as would have its place.
   */
  private static final int ACCEPTS_PER_ROUND = 32;

  /**
   * Limits on what peers may use.
   *
   * @param maxConnections connections in all, at most 4,000
   * @param maxHalfOpen connections that have not yet proved themselves; a new one over the limit
   *     takes the place of an old one
   * @param handshake the longest that proving may take
   */
  public record Limits(int maxConnections, int maxHalfOpen, Duration handshake) {
    /** 2,048 connections, 256 of them half open, 5 seconds. */
    public static final Limits DEFAULT = new Limits(2_048, 256, Duration.ofSeconds(5));

    public Limits {
      if (maxConnections < 1 || maxConnections > 4_000 || maxHalfOpen < 1) {
        throw new IllegalArgumentException(
            "limits of " + maxConnections + " connections, " + maxHalfOpen + " half open");
      }
    }
  }

  /** The life cycle of a server; a start that fails leaves it as it was. */
  enum State {
    /** Made and not started: there is no socket and no thread. */
    NEW,

    /** Started: the thread serves, unless it failed. */
    SERVING,

    /** Closed, or being closed: the thread ends, if there was one. */
    CLOSED;

    static final Transitions<State> TRANSITIONS =
        new Transitions<>(Map.of(NEW, Set.of(SERVING, CLOSED), SERVING, Set.of(CLOSED)));
  }

  private final SocketFolder folder;
  private final String name;
  private final Proofs proofs;
  private final SegmentDirectory directory;
  private final Limits limits;
  private final OncePerKey refusals;
  private final List<ServerConnection> connections = new ArrayList<>();
  private final byte[] buffer = new byte[Sockets.MAX_MESSAGE_BYTES];
  private final int[] fds;
  private final int[] events;
  private final int userId = Descriptor.userId();
  private int listener = -1;
  private int wakeup = -1;
  private long nextConnectionId = 1;
  private Deadline acceptPause = Deadline.in(Duration.ZERO);

  /** Set as soon as the server serves. */
  private @Nullable Thread thread;

  /** Written with the monitor held; the server's thread reads it without. */
  private volatile State state = State.NEW;

  /** Written by the server's thread alone. */
  private volatile long refused;

  /**
   * @param folder where the socket lies; must stay open as long as the server
   * @param name name of this process and of its socket, as peers know it
   * @param secret at least 16 bytes that all processes of the application share
   */
  public SegmentServer(
      final SocketFolder folder,
      final String name,
      final byte[] secret,
      final SegmentDirectory directory,
      final Limits limits) {
    this.folder = folder;
    this.name = SocketFolder.checkName(name);
    this.proofs = new Proofs(secret);
    this.directory = directory;
    this.limits = limits;
    this.refusals = new OncePerKey();
    this.fds = new int[limits.maxConnections() + FIXED_ENTRIES];
    this.events = new int[fds.length];
  }

  /** Path of the socket that peers connect to. */
  public Path socket() {
    return folder.socket(name);
  }

  /**
   * Listens and begins to serve.
   *
   * @throws ZerohopException (FALLBACK) if the socket cannot be made or its name is taken, or there
   *     is no thread
   */
  public synchronized void start() {
    final State next = State.TRANSITIONS.go(state, State.SERVING, this); // Kept if all goes well.
    wakeup = Sockets.newWakeup();
    try {
      listener = folder.listen(name, BACKLOG);
    } catch (final ZerohopException e) {
      Descriptor.close(wakeup);
      throw e;
    }
    final Thread server = Threads.daemon(this::serve, "zerohop-exchange-" + name);
    try {
      server.start();
    } catch (final ZerohopException e) {
      // Peers would connect to a socket that nobody serves, and wait.
      cleanUp();
      Descriptor.close(wakeup);
      throw e;
    }
    thread = server;
    state = next;
  }

  /**
   * Connections that were refused since the start: of other users, of those who do not know the
   * secret or the protocol, and of those who had no place. Each peer's first one is in the log.
   */
  public long refused() {
    return refused;
  }

  private void serve() {
    boolean mayEnd = true;
    try {
      while (state != State.CLOSED) {
        final int count = pollAll();
        for (int i = 0; i < count; i++) {
          serve(connections.get(i), events[i + FIXED_ENTRIES]);
        }
        sweepClosed();
        if ((events[1] & Sockets.READABLE) != 0) {
          acceptSome(); // Last, since it may take connections off the list.
        }
      }
    } catch (final RuntimeException | Error e) {
      mayEnd = fail(e);
    }
    if (mayEnd) {
      cleanUp();
    }
  }

  /** Whether the connections may end now. */
  private boolean fail(final Throwable cause) {
    DeviceCode.SERVER_FAILED
        .says("FATAL: the segment server failed, so peers can no longer map this process's memory")
        .at(name)
        .because(cause)
        .remedy("restart the process, and report this")
        .error(LOG, cause);
    try {
      directory.failed(cause);
      return true;
    } catch (final RuntimeException | Error e) {
      DeviceCode.CONNECTIONS_LEFT_OPEN
          .says("FATAL: the failed segment server could not close its connections")
          .at(name)
          .because(e)
          .remedy("restart the process, and report this")
          .error(LOG, e);
      return false;
    }
  }

  /** Waits for events; returns how many connections took part. */
  private int pollAll() {
    fds[0] = wakeup;
    events[0] = Sockets.READABLE;
    fds[1] = acceptPause.isOver() ? listener : wakeup;
    events[1] = acceptPause.isOver() ? Sockets.READABLE : 0;
    int millis = acceptPause.isOver() ? LONGEST_POLL_MILLIS : ACCEPT_PAUSE_MILLIS;
    final int count = connections.size();
    for (int i = 0; i < count; i++) {
      final ServerConnection connection = connections.get(i);
      fds[i + FIXED_ENTRIES] = connection.fd();
      events[i + FIXED_ENTRIES] = connection.wantedEvents();
      if (connection.hasMore()) {
        millis = 0; // What was received already raises no event.
      } else if (connection.deadline() != null) {
        millis = Math.min(millis, connection.deadline().remainingMillis());
      }
    }
    Sockets.poll(fds, events, count + FIXED_ENTRIES, millis);
    return count;
  }

  /**
   * Takes a few new connections, so that those who knock without end do not keep it from serving.
   */
  private void acceptSome() {
    try {
      for (int i = 0; i < ACCEPTS_PER_ROUND; i++) {
        final int fd = Sockets.accept(listener);
        if (fd < 0) {
          return;
        }
        admit(fd);
      }
    } catch (final PosixException e) {
      // Out of descriptors, most likely: the listener would report that again at once.
      if (refusals.isNew("accept")) {
        DeviceCode.ACCEPT_FAILED
            .says("the segment server cannot accept connections for now (logged once)")
            .at(name)
            .because(e)
            .remedy("raise 'ulimit -n'")
            .warn(LOG, e);
      }
      acceptPause = Deadline.in(Duration.ofMillis(ACCEPT_PAUSE_MILLIS));
    }
  }

  private void admit(final int fd) {
    final int uid;
    final ProcessIdentity process;
    try {
      uid = (int) (Sockets.peer(fd) >>> 32);
      process = ProcessIdentity.ofPeer(fd);
    } catch (final PosixException e) {
      Descriptor.close(fd);
      throw e;
    }
    final ServerSession session =
        new ServerSession(proofs, name, directory, nextConnectionId++, process, uid);
    final ServerConnection connection =
        new ServerConnection(fd, session, limits.handshake(), STALL_LIMIT);
    if (uid != userId) {
      refuse(
          connection, new ExchangeException(Reason.AUTHENTICATION, "the peer is of another user"));
    } else if (makeRoom()) {
      connections.add(connection);
    } else {
      refuse(connection, new ExchangeException(Reason.BUSY, "too many connections"));
    }
  }

  /**
   * Whether there is a place for one more. Where there is none, somebody who has not proved itself
   * gives its own up: the longest waiting one of the process that has most such connections, so
   * that one process alone cannot keep the others out.
   */
  private boolean makeRoom() {
    final int all = connections.size();
    if (all < Math.min(limits.maxConnections(), limits.maxHalfOpen())) {
      return true;
    }
    final HalfOpen halfOpen = HalfOpen.of(connections);
    if (all < limits.maxConnections() && halfOpen.count() < limits.maxHalfOpen()) {
      return true;
    }
    final ServerConnection evicted = halfOpen.oldestOfMost();
    if (evicted == null) {
      return false;
    }
    refuse(
        evicted,
        new ExchangeException(
            Reason.BUSY, "too many unauthenticated connections; this one is the oldest"));
    connections.remove(evicted);
    return true;
  }

  private void serve(final ServerConnection connection, final int happened) {
    try {
      if ((happened != 0 || connection.hasMore()) && !connection.progress(buffer)) {
        connection.close();
      } else if (connection.deadline() != null && connection.deadline().isOver()) {
        throw new ExchangeException(
            Reason.TIMEOUT, "the peer stopped before the end of its handshake");
      }
    } catch (final ExchangeException e) {
      refuse(connection, e);
    } catch (final PosixException e) {
      LOG.debug("segment server {}: connection of {} broke", name, connection.session(), e);
      close(connection);
    } catch (final RuntimeException e) {
      if (refusals.isNew("failure " + connection.session())) {
        DeviceCode.CONNECTION_FAILED
            .says("a request failed, and its connection was closed (logged once)")
            .at(name + ", " + connection.session())
            .because(e)
            .warn(LOG, e);
      }
      close(connection);
    }
  }

  @SuppressWarnings("NonAtomicVolatileUpdate") // Only this server's thread counts; others read.
  private void refuse(final ServerConnection connection, final ExchangeException refusal) {
    refused = refused + 1;
    if (refusals.isNew(refusal.reason() + " " + connection.session())) {
      DeviceCode.CONNECTION_REFUSED
          .says("a connection was refused (logged once)")
          .at(name + ", " + connection.session())
          .because(refusal)
          .warn(LOG);
    }
    connection.refuse(refusal.reason());
    close(connection);
  }

  private void close(final ServerConnection connection) {
    try {
      connection.close();
    } catch (final RuntimeException e) {
      DeviceCode.CONNECTION_END_FAILED
          .says("a connection ended, and not all that it held could be released")
          .at(name + ", " + connection.session())
          .because(e)
          .warn(LOG, e);
    }
  }

  private void sweepClosed() {
    final Iterator<ServerConnection> all = connections.iterator();
    while (all.hasNext()) {
      if (all.next().isClosed()) {
        all.remove();
      }
    }
  }

  private void cleanUp() {
    connections.forEach(this::close);
    connections.clear();
    folder.unlink(name);
    Descriptor.close(listener);
  }

  /** Unlinks the socket, ends all connections and tells the directory of each. Idempotent. */
  @Override
  public synchronized void close() {
    if (state == State.CLOSED) {
      return;
    }
    final State before = state;
    state = State.TRANSITIONS.go(before, State.CLOSED, this);
    if (before == State.SERVING) {
      stop(Objects.requireNonNull(thread, "no thread serves"));
    }
  }

  private void stop(final Thread server) {
    Sockets.wakeup(wakeup);
    boolean interrupted = false;
    final Deadline deadline = Deadline.in(STOP_LIMIT);
    while (server.isAlive() && !deadline.isOver()) {
      try {
        server.join(Math.max(1, deadline.remainingMillis()));
      } catch (final InterruptedException e) {
        interrupted = true;
      }
    }
    if (interrupted) {
      Thread.currentThread().interrupt();
    }
    if (server.isAlive()) {
      throw new ZerohopException(
          ZerohopException.Category.RETRY,
          "segment server " + name + " did not stop within " + STOP_LIMIT);
    }
    Descriptor.close(wakeup);
  }

  @Override
  public String toString() {
    return "segment server " + name;
  }

  /**
   * The connections of a server that have not proved themselves, by the process that made them.
   * Processes of other PID namespaces cannot be told apart and count as one.
   */
  private record HalfOpen(int count, Map<Integer, List<ServerConnection>> byProcess) {

    /**
     * Picks them out.
     *
     * @param connections in the order in which they came
     */
    static HalfOpen of(final List<ServerConnection> connections) {
      final Map<Integer, List<ServerConnection>> byProcess = new HashMap<>();
      int count = 0;
      for (final ServerConnection connection : connections) {
        if (!connection.session().isOpen() && !connection.isClosed()) {
          byProcess
              .computeIfAbsent(connection.session().pid(), absent -> new ArrayList<>())
              .add(connection);
          count++;
        }
      }
      return new HalfOpen(count, byProcess);
    }

    /** The oldest one of the process that has most of them. */
    @Nullable ServerConnection oldestOfMost() {
      List<ServerConnection> most = List.of();
      for (final List<ServerConnection> ofOne : byProcess.values()) {
        most = ofOne.size() > most.size() ? ofOne : most;
      }
      return most.isEmpty() ? null : most.get(0);
    }
  }

  /**
   * The source of the segments that a {@link SegmentServer} serves. All calls come from the
   * server's one thread, so they must not wait; an exception ends the connection that it concerns,
   * but one of {@link #export} or {@link #lend} withholds the segment from the peer, this time, and
   * nothing else.
   */
  public interface SegmentDirectory {

    /**
     * A peer has connected.
     *
     * @return greeting that the peer gets, at most {@link SegmentServer#MAX_GREETING_BYTES}
     */
    byte[] connected(PeerInfo peer);

    /** A new handle to a segment, which the server closes once sent; absent when it is gone. */
    @Nullable SegmentHandle export(long segmentId);

    /** The same for who wants to know who asks. */
    default @Nullable SegmentHandle export(final PeerInfo peer, final long segmentId) {
      return export(segmentId);
    }

    /**
     * Lends the peer a segment, which it writes from then on. Takes the time of one allocation.
     *
     * @param bytes wanted, more than 0; the segment has exactly so many
     * @return the segment's id, which is not used again, and a handle to it, which the server
     *     closes once sent; absent if none is lent
     */
    @Nullable Loan lend(PeerInfo peer, long bytes);

    /**
     * The peer uses a lent segment no more. It may name any id, also one that was not lent to it,
     * of which nothing comes.
     */
    void returned(PeerInfo peer, long segmentId);

    /**
     * As {@link #export}, for a peer that is to hold the segment beyond the end of this process.
     * Absent also of a segment that is not this process's to leave.
     */
    default @Nullable SegmentHandle keep(final PeerInfo peer, final long segmentId) {
      return null;
    }

    /** The peer holds a segment that it got by {@link #keep}. It may name any id. */
    default void kept(final PeerInfo peer, final long segmentId) {}

    /** The peer does not hold a segment, and will not for now. It may name any id. */
    default void unkept(final PeerInfo peer, final long segmentId) {}

    /**
     * The server failed and ends, although nobody closed it. Called once, before any connection
     * ends: to peers the end of their connection looks like the end of this process, and they trust
     * what they have mapped. So whatever memory was handed out must not change from here on.
     */
    void failed(Throwable cause);

    /**
     * The peer's connection ended, exactly once for each {@link #connected} that returned. It
     * returns what was lent by it.
     */
    void disconnected(PeerInfo peer);
  }

  /**
   * A peer that proved to know the secret.
   *
   * @param connectionId unique among the connections of one server, never used again
   * @param name what the peer calls itself
   * @param pid its process id as this process sees it; 0 when it is in another PID namespace
   * @param uid its user id, always that of this process
   */
  public record PeerInfo(long connectionId, String name, int pid, int uid) {}
}
