package io.zerohop.shuffle;

import io.zerohop.device.Device;
import io.zerohop.device.Topology;
import io.zerohop.device.Transitions;
import io.zerohop.device.Undo;
import io.zerohop.device.exchange.PeerLink;
import io.zerohop.device.exchange.SegmentServer;
import io.zerohop.device.exchange.SocketFolder;
import io.zerohop.device.posix.Clock;
import io.zerohop.device.posix.Housekeeping;
import io.zerohop.shuffle.block.BlockPath;
import io.zerohop.shuffle.block.Location;
import io.zerohop.shuffle.block.ReadSide;
import io.zerohop.shuffle.catalog.AccessTimes;
import io.zerohop.shuffle.catalog.MapOutputLease;
import io.zerohop.shuffle.catalog.RootSegment;
import io.zerohop.shuffle.conf.Config;
import io.zerohop.shuffle.fetch.Fetches;
import io.zerohop.shuffle.keeper.KeeperStats;
import io.zerohop.shuffle.log.ShuffleCode;
import io.zerohop.shuffle.pool.Devices;
import io.zerohop.shuffle.pool.Pool;
import io.zerohop.shuffle.pool.Tiers;
import io.zerohop.shuffle.route.PathChooser;
import io.zerohop.shuffle.spill.Evictor;
import io.zerohop.shuffle.transport.Self;
import io.zerohop.shuffle.transport.SharedTransfers;
import io.zerohop.shuffle.transport.Transport;
import io.zerohop.shuffle.transport.remote.RemoteNode;
import io.zerohop.shuffle.transport.remote.SendingNode;
import io.zerohop.shuffle.transport.samenode.Borrower;
import io.zerohop.shuffle.transport.samenode.Keeping;
import io.zerohop.shuffle.transport.samenode.OwnMemory;
import io.zerohop.shuffle.transport.samenode.PeerDirectory;
import io.zerohop.shuffle.transport.samenode.SharedMemory;
import io.zerohop.shuffle.transport.samenode.SharedMemory.SocketWatch;
import io.zerohop.shuffle.transport.ucx.UcxNode;
import io.zerohop.shuffle.write.CopyCompletions;
import io.zerohop.shuffle.write.MapOutput;
import io.zerohop.shuffle.write.OwnOutputs;
import java.security.SecureRandom;
import java.time.Duration;
import java.util.ArrayList;
import java.util.EnumMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import java.util.function.ToLongFunction;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The parts of a node, and their order: they are made at its start, ended at its end, and freed
 * once nobody uses them any more. Owns them all. Thread safe, but for {@link #stop} and {@link
 * #free}: one call at a time.
 */
final class NodeParts {
  /** The steps of a node's life. */
  enum State {
    /** Neighbours may map what it holds. */
    SERVING,

    /** Its server has failed: no byte may change any more, since peers take it for dead. */
    FROZEN,

    /** It serves nobody, and its memory is still mapped. */
    STOPPED,

    /** Nothing of it is left. */
    FREED;

    static final Transitions<State> TRANSITIONS =
        new Transitions<>(
            Map.of(
                SERVING, Set.of(FROZEN, STOPPED),
                FROZEN, Set.of(STOPPED),
                STOPPED, Set.of(FREED)));
  }

  private static final Logger LOG = LoggerFactory.getLogger(NodeParts.class);
  private static final int EXECUTOR_NAME_CHARS = 16;
  private static final Duration CHORES = Duration.ofMillis(100);
  private static final Duration MEETING = Duration.ofSeconds(1);

  private final String executorId;
  private final Clock clock;
  final SocketFolder folder;
  final SegmentServer server;
  private final SocketWatch socketWatch;

  final Config conf;
  final Housekeeping housekeeping;
  private final Housekeeping.Chore maintenance;

  /** Absent if neighbours are met only when they are read. */
  private final Housekeeping.@Nullable Chore neighbours;

  /** Absent without a GPU or neighbours, if map outputs never move, or if it is not to borrow. */
  private final @Nullable Borrower borrower;

  /** By the thread of the neighbours. */
  private long metAt;

  /** The path between nodes by UCX, if there is one. */
  private final @Nullable UcxNode ucx;

  /** The path between nodes by Spark's connections, if there is one. */
  final @Nullable SendingNode sending;

  /** Those of both that there are. */
  private final List<RemoteNode<?>> ways = new ArrayList<>();

  final List<SharedTransfers> shared = new ArrayList<>();

  final Devices devices;
  final OwnMemory memory;
  final Location location;
  final PeerDirectory peers;
  final Fetches fetches;
  final AccessTimes accessTimes;
  final Keeping keeping;
  final OwnOutputs outputs;
  final Evictor evictor;

  /** Changed under the lock. */
  private volatile State state = State.SERVING;

  private NodeParts(
      final ShuffleNode.Setup setup, final Devices devices, final SocketFolder folder) {
    this.executorId = setup.executorId;
    this.clock = setup.clock;
    conf = setup.conf;
    this.devices = devices;
    this.folder = folder;
    this.accessTimes = new AccessTimes(clock);
    this.keeping = new Keeping(clock);
    final long incarnation = new SecureRandom().nextLong();
    final String name = Location.socketName(fileName(executorId, EXECUTOR_NAME_CHARS), incarnation);
    final RootSegment root = new RootSegment(devices.host(), incarnation);
    housekeeping = new Housekeeping(clock);
    try (Undo begun = new Undo(root, housekeeping);
        Undo serving = new Undo(() -> become(State.STOPPED))) {
      memory = new OwnMemory(root, devices, executorId, conf, clock);
      final Tiers tiers = memory.tiers();
      outputs = newOutputs(conf, begun);
      final Self self = new Self(executorId, incarnation, setup.contacts, clock);
      final String clique = conf.paths().contains(BlockPath.PEER) ? devices.fabric().clique() : "";
      ucx =
          added(
              UcxNode.start(
                  conf,
                  self,
                  setup.ucx,
                  setup.controlChannels,
                  clique,
                  devices,
                  tiers,
                  outputs,
                  housekeeping),
              begun);
      sending = added(SendingNode.start(conf, self, setup.carrier, devices, outputs), begun);
      location =
          new Location(
              Location.currentBootId(conf.nodeId()),
              folder.identity(),
              incarnation,
              ucx == null ? 0 : ucx.port(),
              sending != null,
              ucx == null ? "" : clique,
              name);
      final Topology.View view = setup.view();
      peers =
          new PeerDirectory(
              devices,
              folder,
              location,
              view,
              setup.topology,
              setup.secret,
              conf,
              setup.contacts,
              clock);
      final boolean hasNeighbours = setup.neighbours && conf.paths().contains(BlockPath.PEER);
      final Pool gpuPool = tiers.device();
      borrower =
          gpuPool != null && hasNeighbours && conf.device().poolBorrow() && conf.spill().start() < 1
              ? new Borrower(gpuPool, peers)
              : null;
      fetches =
          new Fetches(
              conf,
              sending == null
                  ? setup.stagedTimeout
                  : SendingNode.longerThanATurn(setup.stagedTimeout),
              clock,
              devices,
              new PathChooser(location, conf.paths(), memory, peers, ucx, sending, clock),
              accessTimes,
              between(conf));
      server =
          new SegmentServer(
              folder,
              name,
              setup.secret,
              new SharedMemory(
                  root, tiers, view, conf.keeper().enabled() ? keeping : null, this::serverFailed),
              SegmentServer.Limits.DEFAULT);
      server.start();
      begun.add(server);
      socketWatch = new SocketWatch(server.socket());
      maintenance = housekeeping.every("maintenance", CHORES, this::maintain);
      begun.add(maintenance);
      evictor =
          new Evictor(
              conf,
              setup.coldStorage,
              devices,
              memory,
              accessTimes,
              outputs::leaseToSpill,
              () -> outputs.pendingCommits() > 0,
              housekeeping,
              clock);
      begun.add(evictor::close);
      metAt = clock.nanos() - MEETING.toNanos();
      neighbours =
          hasNeighbours
              ? housekeeping.everyLong("neighbours", MEETING, () -> true, this::meet)
              : null;
      if (neighbours != null) {
        begun.add(neighbours);
        if (borrower != null) {
          borrower.start(neighbours::hurry, evictor::hurry);
        }
        neighbours.hurry(); // Those that are there already.
      }
      serving.done();
      begun.done();
    }
  }

  /** Readers of the same block share its transfer, by whichever path. */
  private Map<BlockPath, Map<ReadSide, Transport>> between(final Config conf) {
    final Map<BlockPath, Map<ReadSide, Transport>> transports = new EnumMap<>(BlockPath.class);
    if (ucx != null) {
      final Map<ReadSide, Transport> sides = new EnumMap<>(ReadSide.class);
      ucx.transports().forEach((side, transport) -> sides.put(side, share(transport, conf)));
      transports.put(BlockPath.UCX, sides);
    }
    if (sending != null) {
      final Transport transport = share(sending.transport(), conf);
      transports.put(BlockPath.SENT, Map.of(ReadSide.HOST, transport, ReadSide.DEVICE, transport));
    }
    return transports;
  }

  private Transport share(final Transport transport, final Config conf) {
    final SharedTransfers sharing =
        new SharedTransfers(transport, conf.requestTimeout().dividedBy(2), clock);
    shared.add(sharing);
    return sharing;
  }

  /** Keeps a way between nodes, if there is one. */
  private <N extends RemoteNode<?>> @Nullable N added(final @Nullable N way, final Undo begun) {
    if (way != null) {
      ways.add(way);
      begun.add(way);
    }
    return way;
  }

  /** What all ways between nodes count. */
  long sum(final ToLongFunction<RemoteNode<?>> count) {
    return ways.stream().mapToLong(count).sum();
  }

  private OwnOutputs newOutputs(final Config conf, final Undo begun) {
    final CopyCompletions completions =
        devices.hasGpu() && conf.device().asyncCommit()
            ? new CopyCompletions(devices, memory.index(), conf.device().timeout())
            : null;
    if (completions != null) {
      begun.add(completions);
    }
    return new OwnOutputs(conf, devices, memory, completions, accessTimes, this::isFrozen);
  }

  /**
   * Makes the parts of a node and starts them; if one of them cannot be made, none stays behind.
   *
   * @param gpu owned from now on
   */
  static NodeParts start(final ShuffleNode.Setup setup, final @Nullable Device gpu) {
    final Devices devices = new Devices(gpu);
    try (Undo undo = new Undo(devices)) {
      final SocketFolder folder =
          ShuffleNode.socketFolder(setup.conf.socketDir(), setup.appId, setup.secret);
      undo.add(folder);
      folder.sweep();
      final NodeParts parts = undo.keep(new NodeParts(setup, devices, folder));
      LOG.info(
          "executor {} shares its memory at {} (pool of {} bytes)",
          setup.executorId,
          parts.server.socket(),
          setup.conf.pool().size());
      return parts;
    } catch (final RuntimeException | Error e) {
      RemoteNode.warnNotUndone(e, LOG);
      throw e;
    }
  }

  static String fileName(final String text, final int chars) {
    final String name = text.replaceAll("[^A-Za-z0-9_-]", "_");
    return name.isEmpty() ? "_" : name.substring(0, Math.min(chars, name.length()));
  }

  /** What the keeper of this node says by its greeting. */
  KeeperStats keeperStats(final byte[] secret) {
    try (PeerLink link =
        PeerLink.connect(
            folder.socket(Location.KEEPER),
            location.socket(),
            Location.KEEPER,
            secret,
            conf.connectTimeout())) {
      final KeeperStats stats = KeeperStats.decode(link.greeting());
      return stats == null ? KeeperStats.NONE : stats;
    }
  }

  /** Whether no byte may change any more: the node ends, or its server failed. */
  boolean isFrozen() {
    return state != State.SERVING;
  }

  private synchronized void become(final State next) {
    state = State.TRANSITIONS.go(state, next, "executor " + executorId);
  }

  /**
   * Called when the server failed, before it drops its connections. Peers will take this node for
   * dead and trust what they have mapped; so nothing of it may change, as if the node were dead.
   */
  void serverFailed(final Throwable cause) {
    synchronized (this) {
      if (state == State.SERVING) {
        become(State.FROZEN);
      }
    }
    memory.freezeForFiles();
    ShuffleCode.NODE_NOT_SERVING
        .says(
            "FATAL: this executor can no longer share its memory; peers read what it holds staged,"
                + " and new map outputs go to files")
        .at("executor " + executorId)
        .because("its segment server failed")
        .remedy("restart the executor")
        .error(LOG, cause);
  }

  /** What may wait for neighbours: loans, and once a second those that are new. */
  private void meet() {
    if (borrower != null) {
      borrower.round();
    }
    if (clock.since(metAt) >= MEETING.toNanos()) {
      metAt = clock.nanos();
      peers.meetNeighbours();
    }
  }

  /** Small chores that no caller waits for. */
  private void maintain() {
    memory.trim();
    keeping.retain(id -> memory.tiers().resolve(id) != null);
    if (borrower != null) {
      borrower.sweep();
    }
    peers.sweep();
    ways.forEach(RemoteNode::maintain);
    // In this order: who removes the socket in good order has changed the state before.
    if (socketWatch.isGone() && !isFrozen()) {
      socketWatch.report();
    }
  }

  /** Stops serving and disconnects; nothing is freed yet. Idempotent. */
  void stop() {
    if (state == State.STOPPED || state == State.FREED) {
      return;
    }
    become(State.STOPPED);
    keeping.ends(); // Before anything fails that readers ask for.
    evictor.stop();
    outputs.close();
    // Before anything ends no byte may change any more: peers may go on reading what they have
    // mapped.
    memory.freeze();
    server.close();
    maintenance.close();
    evictor.close();
    peers.close();
    shared.forEach(SharedTransfers::close);
    ways.forEach(RemoteNode::close);
    if (neighbours != null) {
      neighbours.close();
    }
    housekeeping.close();
    folder.sweep();
    folder.close();
    memory.index().unregisterAll();
  }

  /**
   * Frees everything, once it was stopped. Idempotent.
   *
   * @throws IllegalStateException if something of it is still in use; nothing is freed then
   */
  void free() {
    if (state == State.FREED) {
      return;
    }
    checkThreadsEnded();
    checkUnused();
    become(State.FREED);
    try {
      memory.close();
    } finally {
      devices.close();
    }
  }

  private void checkThreadsEnded() {
    if (maintenance.isBusy() || evictor.isBusy() || neighbours != null && neighbours.isBusy()) {
      throw new IllegalStateException(
          "executor "
              + executorId
              + " ends while its housekeeping is still at work; its memory stays mapped");
    }
    for (final RemoteNode<?> way : ways) {
      if (way.isAlive()) {
        throw new IllegalStateException(
            "executor "
                + executorId
                + " ends while "
                + (way == ucx ? "UCX" : "what it sends")
                + " is still at work; its memory stays mapped");
      }
    }
  }

  private void checkUnused() {
    peers.sweep();
    final int windows = memory.lanes().openLeases() + peers.openLeases();
    final long slabs = sum(RemoteNode::slabsTaken);
    final int pending = outputs.pendingCommits();
    final Set<MapOutput> writers = outputs.open();
    final Set<MapOutputLease> leases = outputs.leases();
    if (!writers.isEmpty() || !leases.isEmpty() || windows > 0 || slabs > 0 || pending > 0) {
      throw new IllegalStateException(
          String.format(
              Locale.ROOT,
              "executor %s ends while writers %s, leases %s and %d fetch windows are still open."
                  + " Copies of %d map outputs are under way, %d receive buffers are in use, and"
                  + " the executor's memory stays mapped",
              executorId,
              writers,
              leases,
              windows,
              pending,
              slabs));
    }
  }
}
