package io.zerohop.shuffle.transport.ucx;

import io.zerohop.device.Device;
import io.zerohop.device.ZerohopException;
import io.zerohop.device.posix.Clock;
import io.zerohop.device.posix.Housekeeping;
import io.zerohop.shuffle.block.Block;
import io.zerohop.shuffle.block.BlockPath;
import io.zerohop.shuffle.block.BlockSource;
import io.zerohop.shuffle.block.Location;
import io.zerohop.shuffle.block.ReadSide;
import io.zerohop.shuffle.conf.Config;
import io.zerohop.shuffle.log.ShuffleCode;
import io.zerohop.shuffle.pool.Devices;
import io.zerohop.shuffle.pool.SegmentMemory;
import io.zerohop.shuffle.pool.Tier;
import io.zerohop.shuffle.pool.Tiers;
import io.zerohop.shuffle.transport.ControlChannel;
import io.zerohop.shuffle.transport.ControlChannel.ControlService;
import io.zerohop.shuffle.transport.Self;
import io.zerohop.shuffle.transport.Transport;
import io.zerohop.shuffle.transport.remote.RemoteNode;
import io.zerohop.shuffle.transport.remote.RemoteService;
import io.zerohop.shuffle.transport.remote.RemoteService.BlockHolder;
import io.zerohop.shuffle.transport.remote.RemoteService.RemoteThreads;
import io.zerohop.shuffle.transport.remote.RemoteTransfer;
import io.zerohop.shuffle.transport.remote.ServedReader;
import io.zerohop.shuffle.transport.remote.ServedReader.ServedLease;
import io.zerohop.shuffle.transport.remote.Wire;
import io.zerohop.shuffle.transport.ucx.FabricReader.FabricImports;
import io.zerohop.shuffle.transport.ucx.engine.LoopbackTest;
import io.zerohop.shuffle.transport.ucx.engine.NetworkDevices.RdmaDevices;
import io.zerohop.shuffle.transport.ucx.engine.UcxEngine;
import io.zerohop.shuffle.transport.ucx.engine.UcxEngine.UcxStarter;
import io.zerohop.shuffle.transport.ucx.engine.UcxException.OldLibucxException;
import io.zerohop.shuffle.transport.ucx.memory.GetQuestions;
import io.zerohop.shuffle.transport.ucx.memory.GetQuestions.FabricTarget;
import io.zerohop.shuffle.transport.ucx.memory.GetQuestions.TestTarget;
import io.zerohop.shuffle.transport.ucx.memory.TestRange;
import io.zerohop.shuffle.transport.ucx.memory.TransferMemory;
import io.zerohop.shuffle.transport.ucx.memory.TransferMemory.GpuSlabs;
import java.nio.ByteBuffer;
import java.time.Duration;
import java.util.EnumMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Executor;
import java.util.function.Consumer;
import java.util.function.Function;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * An executor's part of the path between nodes: it serves its own map outputs to readers elsewhere
 * and moves what they hold here. Thread safe; owns UCX and the control channel.
 */
public final class UcxNode extends RemoteNode<UcxPeer> {
  private static final Logger LOG = LoggerFactory.getLogger(UcxNode.class);

  private final UcxEngine engine;
  private final TransferMemory memory;
  private final ControlChannel channel;
  private final PeerConnector connector;

  /** What reads GPU memory within this node's clique, if it is in one. */
  private final @Nullable FabricReader fabric;

  private UcxNode(
      final UcxEngine engine,
      final TransferMemory memory,
      final RemoteThreads threads,
      final @Nullable FabricReader fabric,
      final ControlChannel channel,
      final UcxAnswers service,
      final PeerConnector connector) {
    super(service, threads, memory.slabs());
    this.connector = connector;
    this.engine = engine;
    this.memory = memory;
    this.fabric = fabric;
    this.channel = channel;
  }

  /**
   * Starts the path between nodes, if there is a channel for it, and the configuration has path
   * {@code ucx}.
   *
   * @param starter starts UCX; the node owns what comes of it
   * @param channels makes the channel by which executors of other nodes ask this one, given what
   *     answers; the node owns it. Absent, as the starter is, if UCX is not to be used
   * @param clique of the NVLink fabric that the GPU is in and may use; empty if there is none
   * @param tiers own segments
   * @param holder finds own map outputs
   * @param housekeeping wakes UCX where events get lost
   * @return absent if there is none, or UCX cannot be used here, which is said once in the log
   */
  public static @Nullable UcxNode start(
      final Config conf,
      final Self self,
      final @Nullable UcxStarter starter,
      final @Nullable Function<ControlService, ControlChannel> channels,
      final String clique,
      final Devices devices,
      final Tiers tiers,
      final BlockHolder holder,
      final Housekeeping housekeeping) {
    if (starter == null || channels == null || !conf.paths().contains(BlockPath.UCX)) {
      return null;
    }
    if (!devices.hasGpu() && !RdmaDevices.any() && !conf.ucx().emulatedGets()) {
      ShuffleCode.NO_USE_OF_UCX
          .says("this executor does not start UCX: there is neither an RDMA adapter nor a GPU")
          .at("executor " + self.executorId())
          .info(LOG);
      return null;
    }
    return begin(
        ShuffleCode.UCX_UNAVAILABLE
            .says("this executor does not use UCX; blocks of other nodes are sent or staged")
            .at("executor " + self.executorId())
            .remedy(
                "install libucx 1.19 or later; if it is there, name the jucx jar of its kind by"
                    + " spark.zerohop.ucx.jucx"),
        "why there is no UCX",
        LOG,
        begun -> {
          final Clock clock = self.clock();
          final UcxEngine engine;
          try {
            final Device device = devices.of(devices.hasGpu() ? Tier.DEVICE : Tier.HOST);
            engine = starter.start(device::enter);
          } catch (final OldLibucxException e) {
            e.message().code(ShuffleCode.LIBUCX_TOO_OLD).warn(LOG);
            return null;
          }
          begun.add(engine);
          if (engine.rdma()) {
            final Housekeeping.Chore waking =
                housekeeping.every("ucx-alarm", UcxEngine.WAKE_PERIOD, engine::wake);
            begun.add(waking);
          }
          LoopbackTest.run(engine);
          final RemoteThreads threads = new RemoteThreads();
          begun.add(threads);
          final TransferMemory memory =
              TransferMemory.of(engine, self.incarnation(), devices, tiers, conf, clock);
          begun.add(memory);
          final UcxAnswers service =
              new UcxAnswers(
                  conf, self, holder, threads.answers(), threads.sends(), engine, memory);
          final FabricReader fabric =
              clique.isEmpty()
                  ? null
                  : new FabricReader(
                      devices,
                      clique,
                      tiers.of(Tier.DEVICE),
                      threads.sends(),
                      conf.device().timeout(),
                      clock);
          final ControlChannel channel = channels.apply(service);
          begun.add(channel);
          final PeerConnector connector =
              new PeerConnector(engine, channel, memory, devices.hasGpu(), conf, self);
          LOG.info(
              "executor {} serves other nodes by UCX, control port {} ({})",
              self.executorId(),
              channel.port(),
              engine.describe());
          return new UcxNode(engine, memory, threads, fabric, channel, service, connector);
        });
  }

  /** The port at which this executor is asked. */
  public int port() {
    return channel.port();
  }

  @Override
  public UcxPeer connect(final BlockSource source) {
    final UcxPeer peer = super.connect(source);
    final FabricReader within = fabric;
    if (within != null && within.reaches(source.knownLocation().clique())) {
      peer.fabric(() -> within.owner(source.executorId()));
    }
    return peer;
  }

  @Override
  protected Duration connectLimit() {
    return connector.limit();
  }

  @Override
  protected UcxPeer connectTo(final BlockSource source) {
    return connector.connect(source);
  }

  /** Returns whether something of a connected owner's is got for a reader, and need not be sent. */
  public boolean gets(final Location location, final ReadSide side) {
    final UcxPeer peer = connectedPeer(location);
    return peer != null
        && (peer.takesHost() || side == ReadSide.DEVICE && (peer.takesGpu() || byFabric(peer)));
  }

  private static boolean byFabric(final UcxPeer peer) {
    final FabricImports mapped = peer.fabric();
    return mapped != null && !mapped.refused();
  }

  /** The transports of this node: for a reader on the GPU blocks may be received in its memory. */
  public Map<ReadSide, Transport> transports() {
    final Map<ReadSide, Transport> transports = new EnumMap<>(ReadSide.class);
    for (final ReadSide side : ReadSide.values()) {
      transports.put(side, (source, blocks, sink) -> fetch(source, blocks, side, sink));
    }
    return transports;
  }

  private void fetch(
      final BlockSource source,
      final List<Block> blocks,
      final ReadSide side,
      final Transport.Sink sink) {
    final UcxPeer peer = peerOf(source);
    final GpuSlabs onGpu = side == ReadSide.DEVICE && peer.takesGpu() ? memory.gpuSlabs() : null;
    final FabricImports mapped = side == ReadSide.DEVICE ? peer.fabric() : null;
    RemoteTransfer.startEach(
        blocks,
        some ->
            new UcxTransfer(peer, some, sink, memory.slabs(), onGpu, mapped, threads.transfers()));
  }

  @Override
  public void maintain() {
    super.maintain();
    if (fabric != null) {
      fabric.sweep();
    }
  }

  /** Connections to the control port that ended before they had proved to belong here. */
  @Override
  public long strangers() {
    return channel.strangers();
  }

  @Override
  protected boolean end() {
    channel.close();
    threads.close();
    final boolean ended = engine.end();
    if (!ended) {
      ShuffleCode.UCX_NOT_ENDED
          .says("UCX's thread did not end at shutdown; memory that it may use stays mapped")
          .warn(LOG);
    }
    return ended;
  }

  @Override
  protected void free() {
    if (fabric != null) {
      fabric.close();
    }
    memory.close();
  }

  /** Data for readers that get from this owner's memory. Thread safe. */
  public static final class UcxAnswers extends RemoteService<ServedReader> {
    private static final Logger LOG = LoggerFactory.getLogger(UcxAnswers.class);

    private final UcxEngine engine;
    private final TransferMemory memory;

    /**
     * @param slow lets go of what readers had
     * @param memory what is read; stays the caller's
     */
    public UcxAnswers(
        final Config conf,
        final Self self,
        final BlockHolder holder,
        final Executor quick,
        final Executor slow,
        final UcxEngine engine,
        final TransferMemory memory) {
      super(conf, self, holder, quick, slow);
      this.engine = engine;
      this.memory = memory;
    }

    @Override
    protected ServedReader reader(final Consumer<ServedLease> left) {
      return new ServedReader(left, clock);
    }

    @Override
    protected byte[] hello(final ServedReader reader, final byte[] address, final boolean gpu) {
      final byte[] own = engine.address();
      final TestTarget near = TestTarget.of(memory.hostTest());
      final TestTarget far = gpu ? gpuTarget() : TestTarget.NONE;
      final ByteBuffer rest =
          ByteBuffer.allocate(1 + 4 + own.length + near.encodedBytes() + far.encodedBytes());
      rest.put((byte) (engine.rdma() ? 1 : 0));
      Wire.put(rest, own);
      near.write(rest);
      far.write(rest);
      return rest.array();
    }

    /** None if there is no memory for it now, or UCX cannot register it: it is only a test. */
    private TestTarget gpuTarget() {
      try {
        final TestRange range = memory.gpuTest();
        return range == null ? TestTarget.NONE : TestTarget.of(range);
      } catch (final ZerohopException e) {
        ShuffleCode.GPU_NOT_OFFERED
            .says("executors of other nodes cannot read this GPU's memory; its blocks are sent")
            .because(e)
            .warn(LOG);
        return TestTarget.NONE;
      }
    }

    @Override
    protected void answer(
        final byte kind,
        final ByteBuffer question,
        final ServedReader reader,
        final Consumer<ByteBuffer> answer) {
      switch (kind) {
        case GetQuestions.KEYS -> answer.accept(keys(question));
        case GetQuestions.HANDLES -> answer.accept(handles(question));
        case GetQuestions.EVENTS ->
            answer.accept(Wire.granted(Long.BYTES).putLong(engine.events()).flip());
        default -> throw new IllegalArgumentException("there is no such request");
      }
    }

    private ByteBuffer keys(final ByteBuffer question) {
      final int count = segmentCount(question);
      final byte[][] keys = new byte[count][];
      final long[] addresses = new long[count];
      int bytes = 0;
      for (int i = 0; i < count; i++) {
        final SegmentMemory segment = memory.segments().memory(question.getLong());
        final byte[] key = segment == null ? null : memory.segments().key(segment);
        keys[i] = key == null ? new byte[0] : key;
        addresses[i] = segment == null ? 0 : segment.address();
        bytes += 8 + 4 + keys[i].length;
      }
      final ByteBuffer answer = Wire.granted(bytes);
      for (int i = 0; i < count; i++) {
        answer.putLong(addresses[i]);
        Wire.put(answer, keys[i]);
      }
      return answer.flip();
    }

    private static int segmentCount(final ByteBuffer question) {
      final int count = question.getInt();
      if (count < 0 || count > question.remaining() / Long.BYTES) {
        throw new IllegalArgumentException("the request is truncated");
      }
      return count;
    }

    /** The reader holds leases on the segments; one that is gone all the same has no handle. */
    private ByteBuffer handles(final ByteBuffer question) {
      final FabricTarget[] targets = new FabricTarget[segmentCount(question)];
      int bytes = 0;
      for (int i = 0; i < targets.length; i++) {
        final SegmentMemory segment = memory.segments().memory(question.getLong());
        targets[i] = fabricTarget(segment);
        bytes += targets[i].encodedBytes();
      }
      final ByteBuffer answer = Wire.granted(bytes);
      for (final FabricTarget target : targets) {
        target.write(answer);
      }
      return answer.flip();
    }

    /** A handle that is not available is no reason to fail: the reader has other paths. */
    private static FabricTarget fabricTarget(final @Nullable SegmentMemory segment) {
      try {
        return FabricTarget.of(segment == null ? null : segment.segment().exportFabric());
      } catch (final ZerohopException e) {
        ShuffleCode.FABRIC_NOT_OFFERED
            .says("a segment cannot be read over the NVLink fabric")
            .at(String.valueOf(segment))
            .because(e)
            .warn(LOG);
        return FabricTarget.of(null);
      }
    }
  }
}
