package io.zerohop.shuffle;

import io.zerohop.device.CopyStream;
import io.zerohop.device.Device;
import io.zerohop.device.HostBuffer;
import io.zerohop.device.Message;
import io.zerohop.device.Topology;
import io.zerohop.device.ZerohopException;
import io.zerohop.device.exchange.SocketFolder;
import io.zerohop.device.posix.Clock;
import io.zerohop.device.posix.Housekeeping;
import io.zerohop.shuffle.block.BlockSource;
import io.zerohop.shuffle.block.Location;
import io.zerohop.shuffle.block.ReadSide;
import io.zerohop.shuffle.block.StoredOutput;
import io.zerohop.shuffle.catalog.MapOutputLease;
import io.zerohop.shuffle.conf.Config;
import io.zerohop.shuffle.fetch.Fetch;
import io.zerohop.shuffle.fetch.Fetches;
import io.zerohop.shuffle.keeper.KeeperStats;
import io.zerohop.shuffle.pool.SegmentIds;
import io.zerohop.shuffle.pool.Tier;
import io.zerohop.shuffle.spill.Evictor.ColdStorage;
import io.zerohop.shuffle.spill.Evictor.EvictionScope;
import io.zerohop.shuffle.transport.ContactListener;
import io.zerohop.shuffle.transport.ControlChannel;
import io.zerohop.shuffle.transport.ControlChannel.ControlService;
import io.zerohop.shuffle.transport.Transport.FallbackTransport;
import io.zerohop.shuffle.transport.remote.Carrier.CarrierStarter;
import io.zerohop.shuffle.transport.samenode.Keeping;
import io.zerohop.shuffle.transport.ucx.engine.UcxEngine.UcxStarter;
import io.zerohop.shuffle.write.MapOutput;
import io.zerohop.shuffle.write.MapOutput.OverflowFiles;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.function.BooleanSupplier;
import java.util.function.Function;
import org.jspecify.annotations.Nullable;

/**
 * One executor's part of the shuffle: its map outputs in memory, the socket at which peers connect,
 * and the peers whose memory it reads. Thread safe. Owns everything it made; writers, leases and
 * fetches are closed by those who asked for them, before the node.
 */
public final class ShuffleNode implements AutoCloseable {
  private static final int APP_NAME_CHARS = 64;
  private static final Duration KEPT_LIMIT = Duration.ofSeconds(1);

  final NodeParts parts;

  private ShuffleNode(final NodeParts parts) {
    this.parts = parts;
  }

  /**
   * Starts a node on shared host memory.
   *
   * @throws ZerohopException (FALLBACK) if the native library, the socket folder or the first
   *     memory cannot be had; nothing stays behind
   */
  public static ShuffleNode start(final Setup setup) {
    return start(setup, null);
  }

  /**
   * Starts a node that can hold blocks in GPU memory too; its catalog and signals stay in host
   * memory.
   *
   * @param gpu owned by the node from now on, also if it cannot start
   * @throws ZerohopException (FALLBACK) as above
   */
  public static ShuffleNode start(final Setup setup, final @Nullable Device gpu) {
    return new ShuffleNode(NodeParts.start(setup, gpu));
  }

  /** Returns the address of this node for others. */
  public Location location() {
    return parts.location;
  }

  /**
   * Returns a test whether a shuffle was unregistered since this call: writes that began before
   * must not outlive it.
   */
  public BooleanSupplier end(final int shuffleId) {
    return parts.memory.index().registration(shuffleId)::isEnded;
  }

  /** Returns whether blocks can lie in GPU memory here. */
  public boolean hasGpu() {
    return parts.devices.hasGpu();
  }

  /** Begins a map output in host memory, as below, that fails if it finds no room. */
  public MapOutput newMapOutput(final int shuffleId, final long mapId, final int partitions) {
    return newMapOutput(shuffleId, mapId, partitions, Tier.HOST, null);
  }

  /**
   * Begins a map output.
   *
   * @param mapId the map task attempt; no two outputs of a shuffle share it
   * @param partitions reduce partitions of the shuffle
   * @param tier of blocks that come from the host; those of the GPU go to the GPU's pool
   * @param files take what finds no room, and are the output's from now on; without, it fails then
   */
  public MapOutput newMapOutput(
      final int shuffleId,
      final long mapId,
      final int partitions,
      final Tier tier,
      final @Nullable OverflowFiles files) {
    return MapOutput.of(parts.outputs, shuffleId, mapId, partitions, tier, files);
  }

  /** Returns whether this node holds the map output in memory. */
  public boolean holds(final int shuffleId, final long mapId) {
    return parts.memory.index().find(shuffleId, mapId) != null;
  }

  /**
   * A hold on one of this node's own map outputs, for the caller to close; absent if not held.
   * Waits for one whose copies have not ended, as long as readers do.
   */
  public @Nullable MapOutputLease lease(final int shuffleId, final long mapId) {
    return lease(shuffleId, mapId, readyTimeout());
  }

  /** The longest wait for copies of a map output that is published. */
  public Duration readyTimeout() {
    return parts.conf.readyTimeout();
  }

  /**
   * The same for a thread that others need.
   *
   * @param patience how long to wait for copies
   * @throws io.zerohop.device.WaitException (RETRY) if they have not ended by then
   */
  public @Nullable MapOutputLease lease(
      final int shuffleId, final long mapId, final Duration patience) {
    return parts.outputs.lease(shuffleId, mapId, patience);
  }

  /**
   * Forgets a map output; its memory is freed after its last reader.
   *
   * @return whether it was held
   */
  public boolean remove(final int shuffleId, final long mapId) {
    return parts.memory.index().remove(shuffleId, mapId);
  }

  /**
   * Returns the port at which the keeper of a map output answers other nodes, if a keeper holds all
   * that a reader of the output needs, so that it outlives this node. Waits for a keeper that is
   * connected, for a moment. Takes no lock but the catalog's where the keeper has it already: every
   * map task asks.
   *
   * @return {@link Keeping#NOT_KEPT} if the output ends with this node; 0 if only this node's
   *     executors reach it then, as what lies in GPU memory where the keeper cannot copy it
   */
  public int keeperPort(final int shuffleId, final long mapId) {
    final long[] segments = parts.memory.index().segmentsOf(shuffleId, mapId);
    boolean isHost = true;
    for (final long id : segments) {
      if (SegmentIds.isBorrowed(id)) {
        return Keeping.NOT_KEPT;
      }
      isHost &= SegmentIds.tier(id) == Tier.HOST;
    }
    final int port = parts.keeping.awaitKept(segments, KEPT_LIMIT);
    return isHost || parts.keeping.copiesGpu() ? port : Math.min(port, 0);
  }

  /** Opens the folder of an application's sockets on this node, for the caller to close. */
  public static SocketFolder socketFolder(
      final java.nio.file.@Nullable Path base, final String appId, final byte[] secret) {
    return SocketFolder.open(base, NodeParts.fileName(appId, APP_NAME_CHARS), secret);
  }

  /** Returns whether a keeper runs on this node, connected or not. */
  public boolean keeperRuns() {
    return parts.folder.isServed(Location.KEEPER);
  }

  /**
   * Asks the keeper of this node what it holds. Waits a limited time.
   *
   * @param secret of the application
   * @throws ZerohopException if none answers
   */
  public KeeperStats keeperStats(final byte[] secret) {
    return parts.keeperStats(secret);
  }

  /**
   * Returns the port of the keeper that connected last, also after its end: outputs that it held
   * name this port. 0 if it answers no other nodes, or none has connected.
   */
  public int lastKeeperPort() {
    return parts.keeping.lastPort();
  }

  /** Returns whether a keeper is connected. */
  public boolean hasKeeper() {
    return parts.keeping.hasKeeper();
  }

  /** Shuffles that this node holds in memory, in part or all. */
  public List<Integer> shuffles() {
    return parts.memory.index().shuffles();
  }

  /** Names of the map outputs that this node holds in memory. */
  public List<StoredOutput> stored() {
    return parts.memory.index().stored();
  }

  /**
   * Forgets a shuffle: frees what this node holds of it, after its last reader, refuses the commits
   * of writers that began before, and drops what is remembered of peers' catalogs. Writers that
   * begin afterwards are welcome: Spark may compute a shuffle again that it cleaned up.
   */
  public void unregisterShuffle(final int shuffleId) {
    parts.memory.unregister(shuffleId);
    parts.accessTimes.forget(shuffleId);
    parts.peers.forget(shuffleId);
    parts.peers.sweep();
  }

  /**
   * Begins to fetch blocks for one reader on the host, which closes the fetch.
   *
   * @param staged moves what cannot be read in place
   * @param cancelled asked often; true ends any wait of this fetch
   */
  public Fetch fetch(
      final List<BlockSource> sources,
      final FallbackTransport staged,
      final Fetches.Listener listener,
      final BooleanSupplier cancelled) {
    return parts.fetches.begin(sources, staged, listener, ReadSide.HOST, cancelled);
  }

  /**
   * A stream of the GPU in order with what other libraries do there for the calling thread, for the
   * caller to close.
   */
  public CopyStream gpuStream() {
    return parts.devices.threadStreams().take();
  }

  /** Returns whether blocks are to carry checksums. */
  public boolean blocksHaveChecksums() {
    return parts.conf.checksum();
  }

  /** Memory of this process that the GPU reaches, for the caller to close. */
  public HostBuffer gpuHostBuffer(final long bytes) {
    return parts.devices.of(Tier.DEVICE).hostBuffer(bytes);
  }

  /**
   * Returns problems with the GPUs of this node's executors, each in a sentence that names them:
   * two on one GPU, or views of the node that differ. Shuffles go on, by slower paths if need be.
   */
  public List<Message> problems() {
    return parts.peers.problems();
  }

  /**
   * Returns GPU memory of the pool to the driver, because others have run out of it. First go empty
   * segments, then those emptied by moving map outputs to host memory, coldest first. For some
   * seconds the pool takes nothing new in. Waits for copies and for readers, neither for tasks nor
   * for GPU memory; callers may hold leases, but no lock that a reader, a writer or a copy needs.
   *
   * @param bytes that are wanted; whole segments go, so it may be more, or less
   * @param scope which map outputs may move
   * @param limit how long to wait; zero if only what is empty is to go. Where peers may have
   *     segments mapped, a moment is added for them to let go
   * @return bytes that were given back during this call; 0 without a GPU
   */
  public long shrinkDevicePool(final long bytes, final EvictionScope scope, final Duration limit) {
    return parts.isFrozen() ? 0 : parts.evictor.shrink(bytes, scope, limit);
  }

  /** An upper bound of what {@link #shrinkDevicePool} could give back now, in bytes. */
  public long shrinkableDeviceBytes(final EvictionScope scope) {
    return parts.isFrozen() ? 0 : parts.evictor.shrinkableBytes(scope);
  }

  /**
   * Sets what is called when a pool is nearly full and holds shuffles that nobody uses, at most
   * four times a second. It has {@link #finished} called, and does not wait.
   */
  public void onPressure(final Runnable question) {
    parts.evictor.onPressure(question);
  }

  /**
   * Says which shuffles are the first to leave memory, in place of what was said before. They are
   * read as before; one that is used from now on is like any other.
   *
   * @param nanosSince time in nanoseconds since the last query of a shuffle ended, by shuffle
   */
  public void finished(final Map<Integer, Long> nanosSince) {
    parts.accessTimes.finished(nanosSince);
  }

  /** Returns what does this node's periodic work; ends with the node. */
  public Housekeeping housekeeping() {
    return parts.housekeeping;
  }

  /** Returns all fetches of this node, and what is counted of them. */
  public Fetches fetches() {
    return parts.fetches;
  }

  /** Returns the resources that this node holds now. */
  public NodeStats stats() {
    return NodeStats.of(parts);
  }

  /**
   * Stops serving, disconnects and frees everything. Memory that is still being written or read is
   * left mapped, so that no thread faults; a later call frees it. Idempotent.
   *
   * @throws IllegalStateException if writers, leases or fetches are still open; they are named
   */
  @Override
  public synchronized void close() {
    parts.stop();
    parts.free();
  }

  /**
   * The settings that a node is started with: its configuration, and what its process gives it. Not
   * thread safe; not changed any more once a node was started with it.
   */
  public static final class Setup {
    final String appId;
    final String executorId;
    final byte[] secret;
    Config conf;
    Duration stagedTimeout = Duration.ofSeconds(500);
    boolean neighbours;
    Topology topology = Topology.NONE;
    @Nullable ColdStorage coldStorage;
    @Nullable UcxStarter ucx;
    @Nullable Function<ControlService, ControlChannel> controlChannels;
    @Nullable CarrierStarter carrier;
    ContactListener contacts = ContactListener.NONE;
    Clock clock = Clock.system();
    private String gpu = "";

    /**
     * Alone on its node, until more is said.
     *
     * @param conf has the sizes of pools, none of them {@code auto}
     * @param appId names the socket folder
     * @param executorId names the socket, and this executor in messages
     * @param secret of the application
     */
    public Setup(
        final Config conf, final String appId, final String executorId, final byte[] secret) {
      this.conf = conf;
      this.appId = appId;
      this.executorId = executorId;
      this.secret = secret.clone();
    }

    /** Gives one key another value, as {@link Config#with} does. */
    public Setup set(final String key, final Object value) {
      conf = conf.with(key, value);
      return this;
    }

    /** Says how long nothing may come of a reader's staged blocks; Spark's client has its own. */
    public Setup stagedTimeout(final Duration value) {
      stagedTimeout = value;
      return this;
    }

    /** Has the node connect to the others of its host ahead of the first reader. */
    public Setup neighbours() {
      neighbours = true;
      return this;
    }

    /**
     * Names this executor's GPU.
     *
     * @param uuid of the GPU
     * @param links between it and the others of the node
     */
    public Setup gpu(final String uuid, final Topology links) {
      gpu = uuid;
      topology = links;
      return this;
    }

    /** Says what takes map outputs that leave host memory. */
    public Setup coldStorage(final ColdStorage value) {
      coldStorage = value;
      return this;
    }

    /**
     * Has blocks of other nodes read by UCX.
     *
     * @param starter starts it
     * @param channels makes the channel by which other executors ask this one, given what answers
     */
    public Setup ucx(
        final UcxStarter starter, final Function<ControlService, ControlChannel> channels) {
      ucx = starter;
      controlChannels = channels;
      return this;
    }

    /** Says what carries blocks that are sent, if something does. */
    public Setup carrier(final @Nullable CarrierStarter value) {
      carrier = value;
      return this;
    }

    /** Says who hears of executors that are connected to. */
    public Setup contacts(final ContactListener value) {
      contacts = value;
      return this;
    }

    /** Sets the clock by which limits, periods and pauses are measured. */
    public Setup clock(final Clock value) {
      clock = value;
      return this;
    }

    /**
     * Returns fetches of a process in which no node can be started: all blocks are staged, within
     * the limits of a node that is set up in this way.
     */
    public Fetches stagedFetches() {
      return Fetches.stagedOnly(conf, stagedTimeout, clock);
    }

    /** Returns what peers are told of this executor's GPU. */
    Topology.View view() {
      return gpu.isEmpty()
          ? new Topology.View(executorId, "", "")
          : new Topology.View(executorId, gpu, topology.fingerprint());
    }
  }
}
