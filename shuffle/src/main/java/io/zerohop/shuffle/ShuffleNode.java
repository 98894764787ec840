package io.zerohop.shuffle;

import io.zerohop.device.CopyStream;
import io.zerohop.device.Device;
import io.zerohop.device.HostBuffer;
import io.zerohop.device.ZerohopException;
import io.zerohop.device.exchange.SegmentServer;
import io.zerohop.device.exchange.SocketFolder;
import io.zerohop.device.posix.ChoreThread;
import io.zerohop.shuffle.block.BlockSource;
import io.zerohop.shuffle.block.Location;
import io.zerohop.shuffle.block.ReadSide;
import io.zerohop.shuffle.block.StoredOutput;
import io.zerohop.shuffle.catalog.MapOutputLease;
import io.zerohop.shuffle.catalog.OwnMemory;
import io.zerohop.shuffle.catalog.RootSegment;
import io.zerohop.shuffle.catalog.Warmth;
import io.zerohop.shuffle.fetch.BlockFetcher;
import io.zerohop.shuffle.fetch.FetchContext;
import io.zerohop.shuffle.fetch.FetchCounters;
import io.zerohop.shuffle.fetch.FetchListener;
import io.zerohop.shuffle.fetch.LandingBudget;
import io.zerohop.shuffle.fetch.route.PathChooser;
import io.zerohop.shuffle.pool.Devices;
import io.zerohop.shuffle.pool.Pool;
import io.zerohop.shuffle.pool.Tier;
import io.zerohop.shuffle.pool.Tiers;
import io.zerohop.shuffle.spill.Evictor;
import io.zerohop.shuffle.spill.Reach;
import io.zerohop.shuffle.transport.FallbackTransport;
import io.zerohop.shuffle.transport.mapped.LocalMemory;
import io.zerohop.shuffle.transport.mapped.PeerDirectory;
import io.zerohop.shuffle.transport.mapped.SharedMemory;
import io.zerohop.shuffle.transport.mapped.SocketWatch;
import io.zerohop.shuffle.transport.ucx.UcxNode;
import io.zerohop.shuffle.write.CopyCompletions;
import io.zerohop.shuffle.write.MapOutputWriter;
import io.zerohop.shuffle.write.OwnOutputs;
import java.security.SecureRandom;
import java.time.Duration;
import java.util.ArrayDeque;
import java.util.Deque;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.function.BooleanSupplier;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * One executor's part of the shuffle: the map outputs that it holds in memory, the socket at which
 * peers get at them, and the peers whose memory it reads. Thread safe. Owns everything it made;
 * writers, leases and fetchers are closed by those who asked for them, before the node.
 */
public final class ShuffleNode implements AutoCloseable {
  private static final Logger LOG = LoggerFactory.getLogger(ShuffleNode.class);
  private static final int EXECUTOR_NAME_CHARS = 16;
  private static final int APP_NAME_CHARS = 64;
  private static final Duration CHORES = Duration.ofMillis(100);
  private static final Duration MEETING = Duration.ofSeconds(1);

  private final NodeConfig config;
  private final Devices devices;
  private final SocketFolder folder;
  private final OwnMemory memory;
  private final SegmentServer server;
  private final Location location;
  private final LocalMemory local;
  private final PeerDirectory peers;

  /** The path between nodes; null if there is none. */
  private final UcxNode ucx;

  private final LandingBudget landing;
  private final FetchCounters counters = new FetchCounters();
  private final FetchContext fetchContext;
  private final Warmth warmth = new Warmth();
  private final ChoreThread maintenance;
  private final Evictor evictor;
  private final OwnOutputs outputs;
  private final ChoreThread neighbours;
  private final SocketWatch socketWatch;

  /** Whether the socket may be missing: the node ends, or its server failed. */
  private volatile boolean notServing;

  private boolean closed;
  private boolean freed;

  private ShuffleNode(final NodeConfig config, final Devices devices, final SocketFolder folder) {
    this.config = config;
    this.devices = devices;
    this.folder = folder;
    final long incarnation = new SecureRandom().nextLong();
    final String name =
        Location.socketName(fileName(config.executorId(), EXECUTOR_NAME_CHARS), incarnation);
    final RootSegment root = new RootSegment(devices.host(), incarnation);
    final Deque<Runnable> begun = new ArrayDeque<>(List.of(root::close));
    boolean done = false;
    try {
      memory = OwnMemory.behind(root, devices, config.hostPool(), config.devicePool());
      final Tiers tiers = memory.tiers();
      final CopyCompletions completions =
          devices.hasGpu() && config.asyncCommit()
              ? new CopyCompletions(devices, memory.catalog(), config.deviceLimit())
              : null;
      if (completions != null) {
        begun.push(completions::close);
      }
      final MapOutputWriter.Parts parts =
          new MapOutputWriter.Parts(
              config.checksum(),
              config.deviceLimit(),
              devices,
              tiers,
              memory.catalog(),
              completions);
      outputs = new OwnOutputs(parts, warmth, config.requestLimit(), () -> notServing);
      ucx = UcxNode.start(config.ucxSettings(), incarnation, devices, tiers, outputs::retain);
      if (ucx != null) {
        begun.push(ucx::close);
      }
      location =
          new Location(
              Location.currentBootId(config.nodeId()),
              folder.identity(),
              incarnation,
              ucx == null ? 0 : ucx.port(),
              name);
      local = new LocalMemory(root, tiers, config.executorId());
      peers =
          new PeerDirectory(
              devices,
              folder,
              location,
              config.view(),
              config.secret(),
              config.connectLimit(),
              config.requestLimit());
      landing = new LandingBudget(config.landingBytes());
      final PathChooser paths = new PathChooser(location, config.paths(), local, peers, ucx);
      fetchContext =
          new FetchContext(
              config.fetchSettings(),
              devices,
              paths,
              landing,
              counters,
              warmth,
              ucx == null ? Map.of() : ucx.transports());
      server =
          new SegmentServer(
              folder,
              name,
              config.secret(),
              new SharedMemory(root, tiers, config.view(), this::serverFailed),
              SegmentServer.Limits.DEFAULT);
      server.start();
      begun.push(server::close);
      socketWatch = new SocketWatch(server.socket());
      maintenance = begin("maintenance", CHORES, this::maintain, begun);
      evictor = new Evictor(config.spillSettings(), devices, memory, warmth, outputs::leaseToSpill);
      begun.push(evictor::close);
      neighbours =
          config.neighbours() ? begin("neighbours", MEETING, peers::meetNeighbours, begun) : null;
      done = true;
    } finally {
      if (!done) {
        notServing = true;
        begun.forEach(ShuffleNode::undo); // The last one first: threads, and then what they use.
      }
    }
  }

  /** A failure here must hide neither the others nor why the node could not start. */
  private static void undo(final Runnable step) {
    try {
      step.run();
    } catch (final RuntimeException e) {
      LOG.warn("what had begun of a node that cannot start does not end", e);
    }
  }

  private static ChoreThread begin(
      final String name, final Duration period, final Runnable chore, final Deque<Runnable> begun) {
    final ChoreThread maintenance = new ChoreThread(name, period, chore);
    begun.push(maintenance::close);
    return maintenance;
  }

  /**
   * Starts a node on shared host memory.
   *
   * @throws ZerohopException (FALLBACK) if the native library, the socket folder or the first
   *     memory cannot be had; nothing stays behind
   */
  public static ShuffleNode start(final NodeConfig config) {
    return start(config, null);
  }

  /**
   * Starts a node that can hold blocks in GPU memory too; its catalog and signals stay in host
   * memory.
   *
   * @param gpu owned by the node from now on, also if it cannot start; null if there is none
   * @throws ZerohopException (FALLBACK) as above
   */
  public static ShuffleNode start(final NodeConfig config, final Device gpu) {
    boolean done = false;
    final Devices devices = new Devices(gpu);
    SocketFolder folder = null;
    try {
      final java.nio.file.Path base =
          config.socketBase() == null ? SocketFolder.defaultBase() : config.socketBase();
      folder = SocketFolder.open(base, fileName(config.appId(), APP_NAME_CHARS));
      folder.sweep();
      final ShuffleNode node = new ShuffleNode(config, devices, folder);
      done = true;
      LOG.info(
          "executor {} shares its memory at {} (pool of {} bytes)",
          config.executorId(),
          node.server.socket(),
          config.hostPool().limitBytes());
      return node;
    } finally {
      if (!done) {
        if (folder != null) {
          undo(folder::close);
        }
        undo(devices::close);
      }
    }
  }

  private static String fileName(final String text, final int chars) {
    final String name = text.replaceAll("[^A-Za-z0-9_-]", "_");
    return name.isEmpty() ? "_" : name.substring(0, Math.min(chars, name.length()));
  }

  /** How others reach this node. */
  public Location location() {
    return location;
  }

  /**
   * Says whether a shuffle was unregistered since this call: what was begun must not outlive it.
   */
  public BooleanSupplier end(final int shuffleId) {
    return memory.catalog().registration(shuffleId)::isEnded;
  }

  /** Whether blocks can lie in GPU memory here. */
  public boolean hasGpu() {
    return devices.hasGpu();
  }

  /** Begins a map output in host memory, as below. */
  public MapOutputWriter newMapOutput(final int shuffleId, final long mapId, final int partitions) {
    return newMapOutput(shuffleId, mapId, partitions, Tier.HOST);
  }

  /**
   * Begins a map output.
   *
   * @param mapId the map task attempt; no two outputs of a shuffle share it
   * @param partitions reduce partitions of the shuffle
   * @param tier where its blocks are to lie
   */
  public MapOutputWriter newMapOutput(
      final int shuffleId, final long mapId, final int partitions, final Tier tier) {
    return outputs.begin(shuffleId, mapId, partitions, tier);
  }

  /** Whether this node holds the map output in memory. */
  public boolean holds(final int shuffleId, final long mapId) {
    return outputs.holds(shuffleId, mapId);
  }

  /** A hold on one of this node's own map outputs, for the caller to close; null if not held. */
  public MapOutputLease lease(final int shuffleId, final long mapId) {
    return outputs.lease(shuffleId, mapId);
  }

  /**
   * Forgets a map output; its memory is freed after its last reader.
   *
   * @return whether it was held
   */
  public boolean remove(final int shuffleId, final long mapId) {
    return memory.catalog().remove(shuffleId, mapId);
  }

  /** Shuffles of which this node holds something in memory. */
  public List<Integer> shuffles() {
    return memory.catalog().shuffles();
  }

  /** Names of the map outputs that this node holds in memory. */
  public List<StoredOutput> stored() {
    return outputs.stored();
  }

  /**
   * Forgets a shuffle: frees what this node holds of it, after its last reader, refuses the commits
   * of writers that began before, and drops what is remembered of peers' catalogs. Writers that
   * begin afterwards are welcome: Spark may compute a shuffle again that it cleaned up.
   */
  public void unregisterShuffle(final int shuffleId) {
    memory.unregister(shuffleId);
    warmth.forget(shuffleId);
    peers.forget(shuffleId);
    local.catalog().forget(shuffleId);
    peers.sweep();
  }

  /**
   * Begins to fetch blocks for one reader, which closes the fetcher.
   *
   * @param staged moves what cannot be read in place
   * @param cancelled asked often; true ends any wait of this fetcher
   */
  public BlockFetcher fetch(
      final List<BlockSource> sources,
      final FallbackTransport staged,
      final FetchListener listener,
      final BooleanSupplier cancelled) {
    return fetch(sources, staged, listener, ReadSide.HOST, cancelled);
  }

  /**
   * The same for a reader on either side.
   *
   * @param side who reads the blocks; the GPU only where {@link #hasGpu}
   */
  public BlockFetcher fetch(
      final List<BlockSource> sources,
      final FallbackTransport staged,
      final FetchListener listener,
      final ReadSide side,
      final BooleanSupplier cancelled) {
    return new BlockFetcher(fetchContext, sources, staged, listener, side, cancelled);
  }

  /**
   * A stream of the GPU in order with what other libraries do there for the calling thread, for the
   * caller to close.
   */
  public CopyStream gpuStream() {
    return devices.threadStreams().take();
  }

  /** Memory of this process that the GPU reaches, for the caller to close. */
  public HostBuffer gpuHostBuffer(final long bytes) {
    return devices.of(Tier.DEVICE).hostBuffer(bytes);
  }

  /**
   * What is odd about the GPUs of this node's executors, each in a sentence that names them: two on
   * one GPU, or views of the node that differ. Shuffles go on, by slower paths if need be.
   */
  public List<String> problems() {
    return peers.problems();
  }

  /**
   * Gives memory of the pool in GPU memory back to the driver, since somebody else has run out of
   * it: segments that hold nothing, and then what is left empty by map outputs that move to host
   * memory, the coldest first. For some seconds the pool takes nothing new in. Waits for copies and
   * for readers, neither for tasks nor for GPU memory; callers may hold leases, but no lock that a
   * reader, a writer or a copy needs.
   *
   * @param bytes that are wanted; whole segments go, so it may be more, or less
   * @param reach which map outputs may move
   * @param limit how long to wait; zero if only what is empty is to go. Where peers may have
   *     segments mapped, a moment is added for them to let go
   * @return bytes that were given back during this call; 0 without a GPU
   */
  public long shrinkDevicePool(final long bytes, final Reach reach, final Duration limit) {
    return notServing ? 0 : evictor.shrink(bytes, reach, limit);
  }

  /** An upper bound of what {@link #shrinkDevicePool} could give back now, in bytes. */
  public long shrinkableDeviceBytes(final Reach reach) {
    return notServing ? 0 : evictor.shrinkableBytes(reach);
  }

  /** What this node holds now. */
  public NodeStats stats() {
    final Tiers tiers = memory.tiers();
    final Pool gpu = tiers.of(Tier.DEVICE);
    return new NodeStats(
        tiers.of(Tier.HOST).stats(),
        gpu == null ? null : gpu.stats(),
        new NodeStats.Evictions(
            tiers.overflow().deflectedBytes(),
            evictor.givenBytes(),
            evictor.movedToHost(),
            evictor.movedToFiles()),
        new NodeStats.Outputs(
            memory.catalog().outputs(),
            outputs.writers().size(),
            outputs.begunCommits(),
            outputs.pendingCommits()),
        new NodeStats.Leases(
            local.lanes().openLeases()
                + peers.openLeases()
                + outputs.leases().size()
                + (ucx == null ? 0 : ucx.leases()),
            memory.reclaimer().waitingRegions(),
            counters.unready()),
        new NodeStats.Peers(
            memory.root().lanes().connected(),
            peers.connected(),
            peers.mappings(),
            server.refused() + (ucx == null ? 0 : ucx.strangers())),
        new NodeStats.Landing(
            landing.reserved(), ucx == null ? 0 : ucx.slabsTaken(), landing.waitedNanos()),
        counters.moved());
  }

  /**
   * Called when the server failed, before it drops its connections. Peers will take this node for
   * dead and trust what they have mapped; so nothing of it may change, as if the node were dead.
   */
  void serverFailed(final Throwable cause) {
    notServing = true;
    memory.freezeForFiles();
    LOG.error(
        "FATAL: executor {} cannot share its memory any more, since its server failed. What it"
            + " holds stays as it is, peers get it staged, and map outputs go to files from now"
            + " on. Restart the executor",
        config.executorId(),
        cause);
  }

  /** Small chores that no caller waits for. */
  private void maintain() {
    memory.trim();
    peers.sweep();
    if (ucx != null) {
      ucx.maintain();
    }
    // In this order: who removes the socket in good order has set the flag before.
    if (socketWatch.isGone() && !notServing) {
      socketWatch.report();
    }
  }

  /**
   * Stops serving, disconnects and frees everything. Memory that is still being written or read is
   * left mapped, so that no thread faults; a later call frees it. Idempotent.
   *
   * @throws IllegalStateException if writers, leases or fetchers are still open; they are named
   */
  @Override
  public synchronized void close() {
    if (!closed) {
      closed = true;
      stop();
    }
    if (freed) {
      return;
    }
    for (final ChoreThread chore : new ChoreThread[] {maintenance, evictor.alive(), neighbours}) {
      if (chore != null && chore.isAlive()) {
        throw new IllegalStateException(
            "executor "
                + config.executorId()
                + " ends while its thread "
                + chore
                + " is still at work; its memory stays mapped");
      }
    }
    if (ucx != null && ucx.isAlive()) {
      throw new IllegalStateException(
          "executor "
              + config.executorId()
              + " ends while UCX is still at work; its memory stays mapped");
    }
    peers.sweep();
    final int windows = local.lanes().openLeases() + peers.openLeases();
    final int slabs = ucx == null ? 0 : ucx.slabsTaken();
    final int pending = outputs.pendingCommits();
    final Set<MapOutputWriter> writers = outputs.writers();
    final Set<MapOutputLease> leases = outputs.leases();
    if (!writers.isEmpty() || !leases.isEmpty() || windows > 0 || slabs > 0 || pending > 0) {
      throw new IllegalStateException(
          String.format(
              "executor %s ends while writers %s, leases %s and %d fetch windows are still open,"
                  + " copies of %d map outputs are under way and %d pieces of landing memory are in"
                  + " use; its memory stays mapped",
              config.executorId(), writers, leases, windows, pending, slabs));
    }
    freed = true;
    try {
      memory.close();
    } finally {
      devices.close();
    }
  }

  private void stop() {
    evictor.stop();
    outputs.close();
    // Before anything ends no byte may change any more: peers may go on reading what they have
    // mapped.
    memory.freeze();
    notServing = true;
    local.close();
    server.close();
    maintenance.close();
    evictor.close();
    peers.close();
    if (ucx != null) {
      ucx.close();
    }
    if (neighbours != null) {
      neighbours.close();
    }
    folder.sweep();
    folder.close();
    memory.catalog().unregisterAll();
  }
}
