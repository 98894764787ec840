package io.zerohop.shuffle.transport.mapped;

import io.zerohop.device.Device;
import io.zerohop.device.PeerAccess;
import io.zerohop.device.SegmentHandle;
import io.zerohop.device.Transitions;
import io.zerohop.device.exchange.ExchangeException;
import io.zerohop.device.exchange.ExchangeException.Reason;
import io.zerohop.device.exchange.PeerLink;
import io.zerohop.device.exchange.SegmentServer;
import io.zerohop.device.exchange.SocketFolder;
import io.zerohop.device.posix.Clock;
import io.zerohop.shuffle.block.Location;
import io.zerohop.shuffle.catalog.CatalogView.RootView;
import io.zerohop.shuffle.log.ShuffleCode;
import io.zerohop.shuffle.pool.SegmentIds;
import io.zerohop.shuffle.pool.SegmentMemory;
import io.zerohop.shuffle.pool.Tier;
import io.zerohop.shuffle.transport.mapped.PeerDirectory.Greeting;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.HashMap;
import java.util.HashSet;
import java.util.Map;
import java.util.Set;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * One executor as its keeper sees it: as long as it lives, the keeper collects the descriptors of
 * its segments; once it has ended, the keeper serves what was published. Owns the connection, the
 * descriptors and the server. Used by one thread at a time.
 *
 * <p>The end of the connection alone does not show that memory stays as it is: the executor must
 * have said so in its root, or its process must be gone. Otherwise the keeper closes what it holds
 * of it.
 */
public final class KeptExecutor implements AutoCloseable {
  private static final Logger LOG = LoggerFactory.getLogger(KeptExecutor.class);

  /** The process of a lost connection has to end within it. */
  private static final Duration END_LIMIT = Duration.ofSeconds(20);

  /** Index of the start time behind the name of a process in its stat file. */
  private static final int START = 19;

  private static final Duration CONNECT_LIMIT = Duration.ofMillis(500);
  private static final Duration REQUEST_LIMIT = Duration.ofMillis(200);

  /** An executor that does not answer is asked again after this, so that others are served. */
  private static final Duration PAUSE = Duration.ofSeconds(2);

  /** An executor's progress towards its end. */
  enum State {
    /** Connected; what it publishes may change. */
    LIVING,

    /** The connection has ended; whether the process has is not known yet. */
    ENDING,

    /** Its memory is the keeper's. */
    LEFT,

    /** Nothing of it is held. */
    CLOSED;

    static final Transitions<State> TRANSITIONS =
        new Transitions<>(
            Map.of(
                LIVING, Set.of(ENDING, CLOSED),
                ENDING, Set.of(LEFT, CLOSED),
                LEFT, Set.of(CLOSED)));
  }

  private final SocketFolder folder;
  private final String socket;
  private final byte[] secret;
  private final Device device;
  private final Clock clock;
  private final PeerLink link;
  private final Greeting greeting;
  private final SegmentMemory rootMemory;
  private final RootView root;
  private final String process;
  private final Map<Long, SegmentHandle> held = new HashMap<>();

  /** Segments that are not held, since they were too much. */
  private final Set<Long> refused = new HashSet<>();

  private State state = State.LIVING;
  private boolean isFull;
  private long endBy;
  private long askAt;
  private long leftAt;
  private @Nullable LeftMemory left;
  private @Nullable SegmentServer server;

  private KeptExecutor(
      final SocketFolder folder,
      final String socket,
      final byte[] secret,
      final Device device,
      final Clock clock,
      final PeerLink link) {
    this.folder = folder;
    this.socket = socket;
    this.secret = secret;
    this.device = device;
    this.clock = clock;
    this.link = link;
    this.askAt = clock.nanos();
    this.process = processOf(link.peerPid());
    if (process.isEmpty()) {
      throw new ExchangeException(
          Reason.PROTOCOL, socket + " is of a process that is not seen here, or has ended");
    }
    final Greeting said = Greeting.decode(link.greeting());
    if (said == null) {
      throw new ExchangeException(Reason.PROTOCOL, socket + " sent an unknown greeting");
    }
    this.greeting = said;
    try (SegmentHandle handle = link.fetch(said.rootSegment(), REQUEST_LIMIT)) {
      if (handle == null) {
        throw new ExchangeException(Reason.PROTOCOL, socket + " has no root segment");
      }
      rootMemory =
          new SegmentMemory(said.rootSegment(), device.map(handle, socket, PeerAccess.READ));
    }
    boolean done = false;
    try {
      root = new RootView(rootMemory, said.incarnation(), socket);
      done = true;
    } finally {
      if (!done) {
        rootMemory.close();
      }
    }
  }

  /**
   * Connects to an executor. Waits a limited time.
   *
   * @param folder of the sockets; stays the caller's
   * @param socket of the executor
   * @param device maps host memory
   * @throws io.zerohop.device.ZerohopException if it cannot be kept; nothing stays behind
   */
  public static KeptExecutor connect(
      final SocketFolder folder,
      final String socket,
      final byte[] secret,
      final Device device,
      final Clock clock) {
    final PeerLink link =
        PeerLink.connect(folder.socket(socket), Location.KEEPER, socket, secret, CONNECT_LIMIT);
    boolean done = false;
    try {
      final KeptExecutor kept = new KeptExecutor(folder, socket, secret, device, clock, link);
      done = true;
      return kept;
    } finally {
      if (!done) {
        link.close();
      }
    }
  }

  /** Name of its socket. */
  public String socket() {
    return socket;
  }

  /** Returns whether the executor is connected. */
  public boolean isLiving() {
    return state == State.LIVING;
  }

  /** The GPU in whose memory it has left something; empty if in none. */
  public String leftGpu() {
    final boolean isThere =
        state == State.LEFT
            && held.keySet().stream().anyMatch(id -> SegmentIds.tier(id) == Tier.DEVICE);
    return isThere ? greeting.view().gpuUuid() : "";
  }

  /** Returns whether nothing of it is held any more. */
  public boolean isClosed() {
    return state == State.CLOSED;
  }

  /** Bytes that it has left; 0 as long as it lives. */
  public long leftBytes() {
    return left == null || state != State.LEFT ? 0 : left.bytes();
  }

  /** Bytes of the segments that are held, whether it lives or not. */
  public long heldBytes() {
    return state == State.LEFT
        ? leftBytes()
        : held.values().stream().mapToLong(SegmentHandle::bytes).sum();
  }

  /** Ids of the map outputs that it has left, by shuffle; none as long as it lives. */
  public Map<Integer, Set<Long>> leftOutputs() {
    return left == null || state != State.LEFT ? Map.of() : left.outputs();
  }

  /** How long ago it ended, in nanoseconds; meaningful of one that has left something. */
  public long leftNanos() {
    return clock.since(leftAt);
  }

  /**
   * Collects what is new, or takes over if the executor has ended. Waits a limited time.
   *
   * @param room bytes that may be held in addition
   * @return bytes that are held now and were not before
   */
  public long round(final long room) {
    long added = 0;
    if (state == State.LIVING) {
      if (link.alive() && clock.isOver(askAt)) {
        added = collect(room);
      }
      if (!link.alive()) {
        become(State.ENDING);
        endBy = clock.in(END_LIMIT);
      }
    }
    if (state == State.ENDING) {
      if (root.isEnded() || isProcessGone()) {
        takeOver();
      } else if (clock.isOver(endBy)) {
        LOG.info("executor {} has lost its keeper and lives on", socket);
        close();
      }
    }
    return added;
  }

  private long collect(final long room) {
    forgetRetired();
    long left = room;
    try {
      for (int slot = 0; slot < SegmentIds.MAX_SLOTS; slot++) {
        final long id = root.inSlot(slot);
        if (id > 0
            && !SegmentIds.isLent(id)
            && !SegmentIds.isBorrowed(id)
            && id != rootMemory.id()
            && !held.containsKey(id)
            && !refused.contains(id)) {
          left -= hold(id, left);
        }
      }
    } catch (final ExchangeException e) {
      askAt = clock.in(PAUSE);
      LOG.debug("executor {} does not hand over its segments now", socket, e);
    }
    return room - left;
  }

  private void forgetRetired() {
    held.entrySet()
        .removeIf(
            entry -> {
              final boolean retired = !root.inUse(entry.getKey()) && !root.isEnded();
              if (retired && link.alive()) {
                entry.getValue().close();
                return true;
              }
              return false;
            });
    refused.removeIf(id -> !root.inUse(id));
  }

  /** Returns the bytes that it holds now. */
  private long hold(final long id, final long room) {
    final SegmentHandle handle = link.keep(id, REQUEST_LIMIT);
    if (handle == null) {
      return 0; // The table names a segment just before the pool has it: the next round asks again.
    }
    if (handle.kind() != SegmentHandle.Kind.POSIX_FD || handle.bytes() > room) {
      handle.close();
      refused.add(id);
      if (!isFull) {
        isFull = true;
        ShuffleCode.KEEPER_FULL
            .says("the keeper does not hold all memory of an executor")
            .at("segment " + id + " of " + socket)
            .because("it has " + handle.bytes() + " bytes, and " + room + " more may be held")
            .remedy("raise spark.zerohop.keeper.size")
            .warn(LOG);
      }
      link.unkept(id, REQUEST_LIMIT);
      return 0;
    }
    dropSlot(SegmentIds.slot(id));
    held.put(id, handle);
    link.kept(id, REQUEST_LIMIT);
    return handle.bytes();
  }

  /** The owner has used a slot again: what it named before is gone. */
  private void dropSlot(final int slot) {
    held.entrySet()
        .removeIf(
            entry -> {
              final boolean isThere = SegmentIds.slot(entry.getKey()) == slot;
              if (isThere) {
                entry.getValue().close();
              }
              return isThere;
            });
  }

  /** Asks again for what it was not to hold, after others have gone. */
  public void retryRefused() {
    refused.clear();
  }

  /** Name of the executor. */
  public String executorId() {
    return Location.executorOf(socket);
  }

  /** Drops what it has left of a shuffle, and closes it if nothing else is there. */
  public void drop(final int shuffleId) {
    if (left != null && state == State.LEFT) {
      left.drop(shuffleId);
      closeIfEmpty();
    }
  }

  private void closeIfEmpty() {
    if (leftOutputs().isEmpty()) {
      close();
    }
  }

  private void takeOver() {
    become(State.LEFT);
    leftAt = clock.nanos();
    boolean done = false;
    try {
      final LeftMemory memory = new LeftMemory(device, socket, greeting, rootMemory, held);
      left = memory;
      final SegmentServer serving =
          new SegmentServer(
              folder, Location.leftSocket(socket), secret, memory, SegmentServer.Limits.DEFAULT);
      serving.start();
      server = serving;
      done = true;
    } finally {
      if (!done) {
        close();
      }
    }
    LOG.info(
        "executor {} has ended and left shuffles {} in {} bytes",
        socket,
        leftOutputs().keySet(),
        leftBytes());
    closeIfEmpty();
  }

  /** Returns the start time of a process; empty if it has ended, or is not known here. */
  private static String processOf(final int pid) {
    if (pid <= 0) {
      return "";
    }
    try {
      final String stat =
          Files.readString(Path.of("/proc/" + pid + "/stat"), StandardCharsets.ISO_8859_1);
      final String[] words = stat.substring(stat.lastIndexOf(')') + 2).split(" ");
      final boolean over = words[0].equals("Z") || words[0].equals("X");
      return over ? "" : words[START];
    } catch (final IOException e) {
      return "";
    }
  }

  private boolean isProcessGone() {
    return !process.equals(processOf(link.peerPid()));
  }

  private void become(final State next) {
    state = State.TRANSITIONS.go(state, next, this);
  }

  /** Closes everything; readers keep what they have mapped. Idempotent. */
  @Override
  public void close() {
    if (state == State.CLOSED) {
      return;
    }
    become(State.CLOSED);
    link.close();
    try {
      if (server != null) {
        server.close();
      }
    } finally {
      held.values().forEach(SegmentHandle::close);
      held.clear();
      if (left != null) {
        left.close();
      }
      rootMemory.close();
    }
  }

  @Override
  public String toString() {
    return "kept executor " + socket;
  }
}
