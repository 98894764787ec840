package io.zerohop.shuffle.transport.samenode;

import io.zerohop.device.Message;
import io.zerohop.device.Topology;
import io.zerohop.device.Undo;
import io.zerohop.device.ZerohopException;
import io.zerohop.device.exchange.ExchangeException;
import io.zerohop.device.exchange.ExchangeException.Reason;
import io.zerohop.device.exchange.PeerLink;
import io.zerohop.device.exchange.SocketFolder;
import io.zerohop.device.posix.Clock;
import io.zerohop.shuffle.block.Link;
import io.zerohop.shuffle.block.Location;
import io.zerohop.shuffle.conf.Config;
import io.zerohop.shuffle.pool.Devices;
import io.zerohop.shuffle.transport.ContactListener;
import java.nio.BufferUnderflowException;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.EnumSet;
import java.util.List;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.locks.ReentrantLock;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Connections to peers, one for each owner's incarnation, made at first contact and kept. Thread
 * safe; owns the peers.
 */
public final class PeerDirectory implements AutoCloseable {
  private static final Logger LOG = LoggerFactory.getLogger(PeerDirectory.class);
  private static final Duration RETRY_AFTER = Duration.ofSeconds(10);

  /** What comes of a connection to one that has ended, or is just ending. */
  private static final Set<Reason> ENDS = EnumSet.of(Reason.ABSENT, Reason.REFUSED, Reason.CLOSED);

  /** Short beside the time in which a keeper takes over. */
  private static final Duration TAKE_OVER = Duration.ofMillis(10);

  private final Devices devices;
  private final SocketFolder folder;
  private final Location self;
  private final Topology.View view;
  private final Topology topology;
  private final byte[] secret;
  private final Config conf;
  private final ContactListener heard;
  private final Clock clock;

  /** By incarnation: a neighbour's location, known by its socket alone, has no port. */
  private final ConcurrentHashMap<Long, Contact> contacts = new ConcurrentHashMap<>();

  private final List<Peer> peers = new CopyOnWriteArrayList<>();
  private final Set<String> met = ConcurrentHashMap.newKeySet();
  private final Set<Message> reported = ConcurrentHashMap.newKeySet();
  private volatile boolean closed;

  /**
   * @param devices map what peers share
   * @param folder where the peers' sockets are; stays the caller's
   * @param self this executor's own place
   * @param view this executor's GPU
   * @param topology the links between this node's GPUs
   * @param secret the application's
   * @param conf says how long connecting and answers may take
   * @param heard hears of each peer that is connected to
   * @param clock by which it waits until it tries again
   */
  public PeerDirectory(
      final Devices devices,
      final SocketFolder folder,
      final Location self,
      final Topology.View view,
      final Topology topology,
      final byte[] secret,
      final Config conf,
      final ContactListener heard,
      final Clock clock) {
    this.devices = devices;
    this.folder = folder;
    this.self = self;
    this.view = view;
    this.topology = topology;
    this.secret = secret.clone();
    this.conf = conf;
    this.heard = heard;
    this.clock = clock;
  }

  /**
   * The connected peer; connects first if need be, while others that want the same one wait.
   *
   * @param kept whether a keeper may answer for the owner: once nobody serves the owner's socket,
   *     the keeper is connected to, as long as there is one
   * @throws ExchangeException if it cannot be reached; after some reasons the next attempt is made
   *     only after a while
   */
  public Peer connect(final Location location, final String executorId, final boolean kept) {
    return connect(location, executorId, kept, true);
  }

  /**
   * As above.
   *
   * @param remember whether a failure keeps others from trying for a while
   */
  private Peer connect(
      final Location location,
      final String executorId,
      final boolean kept,
      final boolean remember) {
    final Contact contact =
        contacts.computeIfAbsent(location.incarnation(), ignored -> new Contact());
    final Peer known = contact.peer;
    if (known != null && known.alive()) {
      return known;
    }
    lock(contact, executorId);
    try {
      if (contacts.get(location.incarnation()) != contact) {
        return connect(location, executorId, kept, remember); // It was swept.
      }
      final Peer meanwhile = contact.peer;
      if (meanwhile != null && meanwhile.alive()) {
        return meanwhile;
      }
      final ExchangeException failure = contact.failure;
      if (failure != null && !clock.isOver(contact.retryAt)) {
        throw failure;
      }
      final Peer peer = open(location, executorId, kept);
      contact.peer = peer;
      contact.failure = null;
      peers.add(peer);
      if (closed) {
        peer.disconnect();
        peer.sweep();
      }
      return peer;
    } catch (final ExchangeException e) {
      // One that has ended is not found at once, if a keeper may answer for it.
      final boolean isLong = kept || e.reason() != Reason.ABSENT && e.reason() != Reason.REFUSED;
      // A task that is killed while it connects says nothing of the peer.
      if (remember && isLong && !Thread.currentThread().isInterrupted()) {
        contact.failure = e;
        contact.retryAt = clock.in(RETRY_AFTER);
      }
      final Peer lost = contact.peer;
      if (lost != null && !peers.contains(lost)) {
        contact.peer = null; // It was swept while this thread had the lock.
      }
      throw e;
    } finally {
      contact.lock.unlock();
    }
  }

  private void lock(final Contact contact, final String executorId) {
    try {
      // The one that connects may use its whole limit, and then fetch the root.
      if (clock.tryLock(contact.lock, conf.connectTimeout().plus(conf.requestTimeout()))) {
        return;
      }
    } catch (final InterruptedException e) {
      Thread.currentThread().interrupt();
    }
    throw new ExchangeException(
        Reason.TIMEOUT, "another thread is still connecting to executor " + executorId);
  }

  private Peer open(final Location location, final String executorId, final boolean kept) {
    try {
      return open(location.socket(), location, executorId, false);
    } catch (final ExchangeException e) {
      if (!kept || !ENDS.contains(e.reason())) {
        throw e;
      }
      return openLeft(location, executorId, e);
    }
  }

  /**
   * The keeper needs a moment to take over from an owner that was killed just now.
   *
   * @param end why the owner cannot be connected to, which is thrown if there is no keeper
   */
  private Peer openLeft(
      final Location location, final String executorId, final ExchangeException end) {
    final long until = clock.in(conf.connectTimeout());
    for (; ; ) {
      try {
        return open(Location.leftSocket(location.socket()), location, executorId, true);
      } catch (final ExchangeException e) {
        if (!ENDS.contains(e.reason())) {
          throw e;
        }
        if (clock.isOver(until) || !folder.isServed(Location.KEEPER)) {
          LOG.debug("no keeper has what executor {} left", executorId, e);
          throw end;
        }
        pause(e);
      }
    }
  }

  private void pause(final ExchangeException cause) {
    try {
      clock.sleep(TAKE_OVER);
    } catch (final InterruptedException e) {
      Thread.currentThread().interrupt();
      throw cause;
    }
  }

  private Peer open(
      final String socket, final Location location, final String executorId, final boolean left) {
    if (closed) {
      throw new ExchangeException(Reason.CLOSED, "this executor is shutting down");
    }
    final PeerLink link =
        PeerLink.connect(
            folder.socket(socket), self.socket(), socket, secret, conf.connectTimeout());
    try (Undo undo = new Undo(link)) {
      final Greeting greeting = Greeting.decode(link.greeting());
      if (greeting == null || greeting.incarnation() != location.incarnation()) {
        throw new ExchangeException(
            Reason.PROTOCOL, "executor " + executorId + " sent an unknown greeting");
      }
      if (greeting.laneBlock() < 0) {
        throw new ExchangeException(
            Reason.PROTOCOL, "executor " + executorId + " has no lanes left for another peer");
      }
      final Link toGpu = Link.toGpu(topology.reach(view.gpuUuid(), greeting.view().gpuUuid()));
      final Peer peer =
          new Peer(executorId, left, link, greeting, toGpu, devices, conf.requestTimeout(), clock);
      link.onClosed(() -> LOG.info("lost the connection to executor {}", executorId));
      LOG.info("reading the memory of executor {} in place ({})", executorId, location);
      meet(executorId, greeting.view().gpuUuid(), toGpu);
      return undo.keep(peer);
    }
  }

  private void meet(final String executorId, final String gpu, final Link toGpu) {
    final Link link = view.gpuUuid().isEmpty() || gpu.isEmpty() ? Link.PEER_HOST : toGpu;
    final int links = link == Link.PEER_NVLINK ? topology.linksBetween(view.gpuUuid(), gpu) : 1;
    heard.met(
        executorId, "read in place, its memory is mapped here", link, link.expected() * links);
  }

  /**
   * Gets to know the executors of this node before a reader needs them: connects to those that are
   * new, and maps what is new of all of them. Each is tried once here; readers try again. Also
   * settles what is due between them and this one. Takes a limited time for each.
   */
  public void meetNeighbours() {
    for (final String socket : folder.sockets()) {
      final Location location = self.neighbour(socket);
      if (!closed && location != null && !socket.equals(self.socket()) && met.add(socket)) {
        try {
          connect(location, Location.executorOf(socket), false, false);
        } catch (final ZerohopException e) {
          LOG.debug("neighbour {} is left to those who need it", socket, e);
        }
      }
    }
    peers.forEach(Peer::settle);
    peers.forEach(Peer::mapAhead);
    reportProblems();
  }

  private void reportProblems() {
    problems().stream().filter(reported::add).forEach(problem -> problem.warn(LOG));
  }

  /**
   * Returns what is odd about the GPUs of the executors that are connected, see {@link Topology}.
   */
  public List<Message> problems() {
    if (view.gpuUuid().isEmpty()) {
      return List.of();
    }
    final List<Topology.View> views = new ArrayList<>();
    views.add(view);
    for (final Peer peer : peers) {
      if (peer.alive() && !peer.view().gpuUuid().isEmpty()) {
        views.add(peer.view());
      }
    }
    return Topology.problems(views);
  }

  /** Returns the peers that would lend so many bytes of GPU memory now. Does not wait. */
  List<Borrower.Lender> lenders(final long bytes) {
    final List<Borrower.Lender> lenders = new ArrayList<>();
    for (final Peer peer : peers) {
      final long room = peer.lendable();
      if (room >= bytes) {
        lenders.add(new Borrower.Lender(peer, room, peer.isOnSameGpu()));
      }
    }
    return lenders;
  }

  /** Drops what is remembered of a shuffle's catalog at all peers. */
  public void forget(final int shuffleId) {
    peers.forEach(peer -> peer.forget(shuffleId));
  }

  /** Unmaps what nobody reads any more and drops lost peers. */
  @SuppressWarnings("ModifyCollectionInEnhancedForLoop") // Each list of peers is a copy.
  public void sweep() {
    for (final Peer peer : peers) {
      if (peer.sweep()) {
        peers.remove(peer);
        contacts.forEach((incarnation, contact) -> dropContact(incarnation, contact, peer));
      }
    }
  }

  /** Not if a thread is connecting, which has another peer in a moment. */
  private void dropContact(final long incarnation, final Contact contact, final Peer lost) {
    if (contact.peer == lost && contact.lock.tryLock()) {
      try {
        if (contact.peer == lost) {
          contacts.remove(incarnation, contact);
        }
      } finally {
        contact.lock.unlock();
      }
    }
  }

  /** Peers that are connected. */
  public int connected() {
    return (int) peers.stream().filter(Peer::alive).count();
  }

  /** Segments of peers that are mapped. */
  public int mappings() {
    return peers.stream().mapToInt(Peer::mappings).sum();
  }

  /** Leases that readers of this process hold on peers' memory. */
  public int openLeases() {
    return peers.stream().mapToInt(peer -> peer.lanes().openLeases()).sum();
  }

  /** Disconnects from all peers and unmaps their memory, but for what is still being read. */
  @Override
  public void close() {
    closed = true;
    peers.forEach(Peer::disconnect);
    sweep();
  }

  private static final class Contact {
    private final ReentrantLock lock = new ReentrantLock();
    private volatile @Nullable Peer peer;
    private @Nullable ExchangeException failure;
    private long retryAt;
  }

  /**
   * The message of an owner to a peer that connects. Big-endian; a text is two bytes of length and
   * UTF-8:
   *
   * <pre>
   *  0           4             8                    16                24            32
   *  | version   | lane block  | its generation     | root segment id | incarnation |
   *  | executor id | UUID of its GPU | fingerprint of its topology                  |
   * </pre>
   *
   * @param laneBlock the peer's block of lanes in the root segment; -1 if there is none left
   * @param generation of the block, which stays as it is while the peer's leases hold
   * @param rootSegment id of the root segment
   * @param incarnation the owner's life
   * @param view the owner, its GPU and what it sees of the node; the last two empty without a GPU
   */
  record Greeting(
      int laneBlock, long generation, long rootSegment, long incarnation, Topology.View view) {
    private static final int VERSION = 3;
    private static final int FIXED_BYTES = 32;
    private static final int MAX_TEXT_BYTES = 200;

    byte[] encode() {
      final ByteBuffer buffer = ByteBuffer.allocate(FIXED_BYTES + 3 * (2 + MAX_TEXT_BYTES));
      buffer.putInt(VERSION).putInt(laneBlock).putLong(generation);
      buffer.putLong(rootSegment).putLong(incarnation);
      put(buffer, view.executorId());
      put(buffer, view.gpuUuid());
      put(buffer, view.fingerprint());
      final byte[] bytes = new byte[buffer.position()];
      buffer.flip().get(bytes);
      return bytes;
    }

    private static void put(final ByteBuffer to, final String text) {
      final byte[] bytes = text.getBytes(StandardCharsets.UTF_8);
      final int length = Math.min(bytes.length, MAX_TEXT_BYTES);
      to.putShort((short) length).put(bytes, 0, length);
    }

    /** Returns the greeting; absent if the bytes are not one of this version. */
    static @Nullable Greeting decode(final byte[] bytes) {
      try {
        final ByteBuffer buffer = ByteBuffer.wrap(bytes);
        if (buffer.getInt() != VERSION) {
          return null;
        }
        final int laneBlock = buffer.getInt();
        final long generation = buffer.getLong();
        final long rootSegment = buffer.getLong();
        final long incarnation = buffer.getLong();
        final Topology.View view = new Topology.View(text(buffer), text(buffer), text(buffer));
        return buffer.hasRemaining()
            ? null
            : new Greeting(laneBlock, generation, rootSegment, incarnation, view);
      } catch (final BufferUnderflowException e) {
        return null;
      }
    }

    private static String text(final ByteBuffer from) {
      final int length = from.getShort();
      if (length < 0 || length > MAX_TEXT_BYTES) {
        throw new BufferUnderflowException();
      }
      final byte[] bytes = new byte[length];
      from.get(bytes);
      return new String(bytes, StandardCharsets.UTF_8);
    }
  }
}
