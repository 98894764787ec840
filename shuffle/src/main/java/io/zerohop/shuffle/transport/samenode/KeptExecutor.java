package io.zerohop.shuffle.transport.samenode;

import io.zerohop.device.Device;
import io.zerohop.device.PeerAccess;
import io.zerohop.device.SegmentHandle;
import io.zerohop.device.Transitions;
import io.zerohop.device.Undo;
import io.zerohop.device.ZerohopException;
import io.zerohop.device.exchange.ExchangeException;
import io.zerohop.device.exchange.ExchangeException.Reason;
import io.zerohop.device.exchange.PeerLink;
import io.zerohop.device.exchange.SegmentServer;
import io.zerohop.device.exchange.SocketFolder;
import io.zerohop.device.posix.Clock;
import io.zerohop.device.posix.Descriptor;
import io.zerohop.device.posix.FileStatus;
import io.zerohop.shuffle.block.Location;
import io.zerohop.shuffle.catalog.RootSegment.RootView;
import io.zerohop.shuffle.log.ShuffleCode;
import io.zerohop.shuffle.pool.SegmentIds;
import io.zerohop.shuffle.pool.SegmentMemory;
import io.zerohop.shuffle.transport.samenode.PeerDirectory.Greeting;
import java.time.Duration;
import java.util.Comparator;
import java.util.HashMap;
import java.util.Map;
import java.util.Set;
import java.util.function.LongPredicate;
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

  /** Those that ended first come first; of such that have left something. */
  public static final Comparator<KeptExecutor> BY_END =
      (one, other) -> Long.signum(one.leftAt - other.leftAt);

  /** The process of a lost connection has to end within it. */
  private static final Duration END_LIMIT = Duration.ofSeconds(20);

  private static final Duration CONNECT_LIMIT = Duration.ofMillis(500);
  private static final Duration REQUEST_LIMIT = Duration.ofMillis(200);

  /** As long as one executor may take in a round; the rest has its turn in the next one. */
  private static final Duration COLLECT_LIMIT = Duration.ofMillis(300);

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
  private final boolean copiesGpu;
  private final Clock clock;
  private final PeerLink link;
  private final Greeting greeting;
  private final SegmentMemory rootMemory;
  private final RootView root;
  private final Map<Long, SegmentHandle> held = new HashMap<>();

  /** Segments that are not held, and whether more room would help. */
  private final Map<Long, Boolean> refused = new HashMap<>();

  /** The executor's segment table, as of the last look. */
  private final long[] table = new long[SegmentIds.MAX_SLOTS];

  /** Whether a segment is to be asked for, although the table has not changed. */
  private boolean isIncomplete = true;

  private long refusedSegments;
  private volatile State state = State.LIVING;
  private long endBy;
  private long askAt;
  private long leftAt;

  /** What it has left, served or about to be; has the descriptors from then on. */
  private @Nullable LeftMemory taken;

  /** The same while it is served; absent as long as it lives, and once it is closed. */
  private volatile @Nullable LeftMemory left;

  /** Those that it has left, also once it is closed. */
  private @Nullable LeftSegments leftSegments;

  private @Nullable SegmentServer server;

  private KeptExecutor(
      final SocketFolder folder,
      final String socket,
      final byte[] secret,
      final Device device,
      final boolean copiesGpu,
      final Clock clock,
      final PeerLink link) {
    this.folder = folder;
    this.socket = socket;
    this.secret = secret;
    this.device = device;
    this.copiesGpu = copiesGpu;
    this.clock = clock;
    this.link = link;
    this.askAt = clock.nanos();
    if (!link.seesProcess()) {
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
    try (Undo undo = new Undo(rootMemory)) {
      root = undo.keep(new RootView(rootMemory, said.incarnation(), socket));
    }
  }

  /**
   * Connects to an executor. Waits a limited time.
   *
   * @param folder of the sockets; stays the caller's
   * @param socket of the executor
   * @param device maps host memory
   * @param name of this keeper, see {@link Location#keeperName}
   * @throws io.zerohop.device.ZerohopException if it cannot be kept; nothing stays behind
   */
  public static KeptExecutor connect(
      final SocketFolder folder,
      final String socket,
      final byte[] secret,
      final Device device,
      final String name,
      final Clock clock) {
    final PeerLink link =
        PeerLink.connect(folder.socket(socket), name, socket, secret, CONNECT_LIMIT);
    try (Undo undo = new Undo(link)) {
      return undo.keep(
          new KeptExecutor(folder, socket, secret, device, Location.copiesGpu(name), clock, link));
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
    return left != null && left.segments().isOnGpu() ? greeting.view().gpuUuid() : "";
  }

  /** Returns whether nothing of it is held any more. */
  public boolean isClosed() {
    return state == State.CLOSED;
  }

  /** Bytes that it has left; 0 as long as it lives. */
  public long leftBytes() {
    return left == null ? 0 : left.segments().bytes();
  }

  /** Bytes of the segments that are held, whether it lives or not. */
  public long heldBytes() {
    return taken != null
        ? taken.segments().bytes()
        : held.values().stream().mapToLong(SegmentHandle::bytes).sum();
  }

  /** What it has left, for any thread; absent as long as it lives, and once it is closed. */
  public @Nullable LeftMemory left() {
    return left;
  }

  /** Ids of the map outputs that it has left, by shuffle; none as long as it lives. */
  public Map<Integer, Set<Long>> leftOutputs() {
    return left == null ? Map.of() : left.outputs();
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
   * @throws ZerohopException if it cannot take over, also after it has tried for a while
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
      if (root.isEnded() || link.isProcessGone()) {
        takeOver();
      } else if (clock.isOver(endBy)) {
        LOG.info("executor {} has lost its keeper and lives on", socket);
        close();
      }
    }
    return added;
  }

  /**
   * Asks the executor whether it lives, and is not about to end. Waits a limited time. One that
   * says nothing is not asked again for a while.
   *
   * @return whether it has answered that, so that it has not ended before this call
   */
  public boolean answers() {
    if (state != State.LIVING || !link.alive() || !clock.isOver(askAt)) {
      return false;
    }
    try (SegmentHandle handle = link.keep(rootMemory.id(), REQUEST_LIMIT)) {
      return handle != null;
    } catch (final RuntimeException e) { // Whatever it is: the others' outputs go on.
      askAt = clock.in(PAUSE);
      LOG.debug("executor {} does not say whether it lives", socket, e);
      return false;
    }
  }

  private long collect(final long room) {
    if (!isTableChanged() && !isIncomplete) {
      return 0;
    }
    isIncomplete = true; // Until all was gone through.
    drop(id -> !root.inUse(id) && !root.isEnded() && link.alive());
    refused.keySet().removeIf(id -> !root.inUse(id));
    long left = room;
    boolean isComplete = true;
    final long until = clock.in(COLLECT_LIMIT);
    try {
      for (int slot = 0; slot < SegmentIds.MAX_SLOTS; slot++) {
        final long id = root.inSlot(slot);
        if (clock.isOver(until)) {
          isComplete = false; // It answers slowly, and others wait meanwhile.
          break;
        }
        if (id > 0
            && !SegmentIds.isLent(id)
            && !SegmentIds.isBorrowed(id)
            && id != rootMemory.id()
            && !held.containsKey(id)
            && !refused.containsKey(id)) {
          left -= hold(id, left);
          isComplete &= held.containsKey(id) || refused.containsKey(id);
        }
      }
      isIncomplete = !isComplete;
    } catch (final ExchangeException e) {
      askAt = clock.in(PAUSE);
      LOG.debug("executor {} does not hand over its segments now", socket, e);
    }
    return room - left;
  }

  /** Looks at the whole table: a keeper does so often, and mostly there is nothing new. */
  private boolean isTableChanged() {
    boolean isChanged = false;
    for (int slot = 0; slot < table.length; slot++) {
      final long id = root.inSlot(slot);
      isChanged |= id != table[slot];
      table[slot] = id;
    }
    return isChanged;
  }

  /** Returns the bytes that it holds now. */
  private long hold(final long id, final long room) {
    final SegmentHandle handle = link.keep(id, REQUEST_LIMIT);
    if (handle == null) {
      return 0; // The table names a segment just before the pool has it: the next round asks again.
    }
    final boolean isFile = handle.kind() == SegmentHandle.Kind.POSIX_FD;
    final String wrong = isFile ? wrongSize(handle) : "";
    if (!isFile || handle.bytes() > room || !wrong.isEmpty()) {
      handle.close();
      refused.put(id, isFile && wrong.isEmpty());
      refusedSegments++;
      if (refusedSegments == 1) {
        ShuffleCode.KEEPER_FULL
            .says("the keeper does not hold all memory of an executor")
            .at("segment " + id + " of " + socket)
            .because(
                wrong.isEmpty()
                    ? "it has " + handle.bytes() + " bytes, and " + room + " more may be held"
                    : wrong)
            .remedy("raise spark.zerohop.keeper.size")
            .warn(LOG);
      }
      link.unkept(id, REQUEST_LIMIT);
      return 0;
    }
    // The owner has used a slot again: what it named before is gone.
    drop(before -> SegmentIds.slot(before) == SegmentIds.slot(id));
    held.put(id, handle);
    link.kept(id, REQUEST_LIMIT);
    return handle.bytes();
  }

  /**
   * A file in memory has a size, by which it counts to the limit of what is held. A descriptor of
   * GPU memory has none.
   *
   * @return what is wrong with it; empty if nothing is
   */
  private static String wrongSize(final SegmentHandle handle) {
    final FileStatus file = Descriptor.status(handle.fd());
    return file.isRegular() && file.bytes() != handle.bytes()
        ? "its file has " + file.bytes() + " bytes, and its owner said " + handle.bytes()
        : "";
  }

  private void drop(final LongPredicate isGone) {
    held.entrySet()
        .removeIf(
            entry -> {
              final boolean isDropped = isGone.test(entry.getKey());
              if (isDropped) {
                entry.getValue().close();
              }
              return isDropped;
            });
  }

  /** Asks again for what it was not to hold, after others have gone. */
  public void retryRefused() {
    isIncomplete |= refused.values().removeIf(roomHelps -> roomHelps);
  }

  /** Segments that were too much, since the connection; one may count more than once. */
  public long refusedSegments() {
    return refusedSegments;
  }

  /** Segments that it has left and whose descriptors executors of the node got. */
  public long sharedSegments() {
    return leftSegments == null ? 0 : leftSegments.sharedSegments();
  }

  /** Their bytes. */
  public long sharedBytes() {
    return leftSegments == null ? 0 : leftSegments.sharedBytes();
  }

  /** Memory that goes as soon as those who read it have ended. */
  public long leavingBytes() {
    return left == null ? 0 : left.segments().leavingBytes();
  }

  /** Whether segments were too much that it still uses. */
  public boolean isRefused() {
    return refused.containsValue(true);
  }

  /** Name of the executor. */
  public String executorId() {
    return Location.executorOf(socket);
  }

  /** Ids of the map outputs in files, by shuffle. */
  public Map<Integer, Set<Long>> outputsInFiles() {
    return left == null ? Map.of() : left.outputsInFiles();
  }

  /** Drops what it has left in memory, and closes it if nothing is in files. */
  public void dropMemory() {
    if (left != null) {
      left.dropMemory();
      closeIfEmpty();
    }
  }

  /** Drops what it has left of a shuffle, and closes it if nothing else is there. */
  public void drop(final int shuffleId) {
    if (left != null) {
      left.drop(shuffleId);
      closeIfEmpty();
    }
  }

  private void closeIfEmpty() {
    if (leftOutputs().isEmpty()) {
      close();
    }
  }

  /** Begins to serve, or leaves it to the next round for as long as an executor may take to end. */
  private void takeOver() {
    final LeftMemory memory;
    try {
      memory = taken();
      final SegmentServer serving =
          new SegmentServer(
              folder, Location.leftSocket(socket), secret, memory, SegmentServer.Limits.DEFAULT);
      serving.start();
      server = serving;
    } catch (final ZerohopException e) {
      if (clock.isOver(endBy)) {
        throw e;
      }
      // As there is no mapping left, or no descriptor to listen with.
      LOG.debug("it is tried again to serve what {} has left", socket, e);
      return;
    }
    become(State.LEFT);
    left = memory;
    leftAt = clock.nanos();
    LOG.info(
        "executor {} has ended and left shuffles {} in {} bytes",
        socket,
        leftOutputs().keySet(),
        leftBytes());
    closeIfEmpty();
  }

  private LeftMemory taken() {
    LeftMemory memory = taken;
    if (memory == null) {
      memory = new LeftMemory(device, socket, greeting, rootMemory, held, copiesGpu, clock);
      taken = memory;
      leftSegments = memory.segments();
    }
    return memory;
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
    final LeftMemory memory = taken;
    taken = null;
    left = null;
    link.close();
    try {
      if (server != null) {
        server.close();
      }
    } finally {
      if (memory != null) {
        memory.close(); // With what is held, under the lock by which it is copied.
      } else {
        held.values().forEach(SegmentHandle::close);
        held.clear();
      }
      rootMemory.close();
    }
  }

  @Override
  public String toString() {
    return "kept executor " + socket;
  }
}
