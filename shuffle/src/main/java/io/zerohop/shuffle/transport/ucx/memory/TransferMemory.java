package io.zerohop.shuffle.transport.ucx.memory;

import io.zerohop.device.Device;
import io.zerohop.device.Device.AdapterWrites;
import io.zerohop.device.Undo;
import io.zerohop.device.posix.Clock;
import io.zerohop.shuffle.conf.Config;
import io.zerohop.shuffle.log.ShuffleCode;
import io.zerohop.shuffle.pool.Devices;
import io.zerohop.shuffle.pool.Pool;
import io.zerohop.shuffle.pool.PoolFullException;
import io.zerohop.shuffle.pool.Region;
import io.zerohop.shuffle.pool.SegmentIds;
import io.zerohop.shuffle.pool.SegmentMemory;
import io.zerohop.shuffle.pool.SegmentResolver;
import io.zerohop.shuffle.pool.Tier;
import io.zerohop.shuffle.pool.Tiers;
import io.zerohop.shuffle.transport.remote.Slabs;
import io.zerohop.shuffle.transport.remote.Slabs.Slab;
import io.zerohop.shuffle.transport.ucx.engine.UcxEngine;
import io.zerohop.shuffle.transport.ucx.engine.UcxEngine.UcxMemory;
import io.zerohop.shuffle.transport.ucx.engine.UcxException;
import java.time.Duration;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The memory of one executor that UCX reads and writes. Its parts are thread safe. Owns the slabs
 * and the test ranges; the pools stay the caller's.
 *
 * @param segments own segments that peers get from
 * @param slabs pinned host memory that bytes are received in
 * @param gpuSlabs GPU memory that bytes are received in; absent where UCX does not reach it
 * @param hostTest host memory that peers read at first contact
 * @param gpuTest GPU memory that peers read at first contact; absent where UCX does not reach it
 */
public record TransferMemory(
    RegisteredSegments segments,
    Slabs slabs,
    @Nullable GpuSlabs gpuSlabs,
    TestRange hostTest,
    @Nullable TestRange gpuTest)
    implements AutoCloseable {

  /**
   * Memory of an executor's devices and pools.
   *
   * @param incarnation of this executor: the bytes of its test ranges follow from it
   * @param conf bounds receive buffers in host memory
   * @param clock by which they are idle
   */
  public static TransferMemory of(
      final UcxEngine engine,
      final long incarnation,
      final Devices devices,
      final Tiers tiers,
      final Config conf,
      final Clock clock) {
    final Device device = devices.of(devices.hasGpu() ? Tier.DEVICE : Tier.HOST);
    final boolean direct =
        devices.hasGpu()
            && engine.reachesGpuMemory()
            && device.adapterWrites() != AdapterWrites.UNORDERED;
    final RegisteredSegments segments = new RegisteredSegments(engine, tiers, clock);
    return new TransferMemory(
        segments,
        new Slabs(device::hostBuffer, conf.fetch().receiveBuffers(), clock),
        direct ? new GpuSlabs(tiers.of(Tier.DEVICE), segments, device) : null,
        new TestRange(engine, device, Tier.HOST, incarnation),
        direct ? new TestRange(engine, device, Tier.DEVICE, incarnation) : null);
  }

  /** Frees what it owns. The engine must have ended, so that nothing reads or writes it. */
  @Override
  public void close() {
    hostTest.close();
    if (gpuTest != null) {
      gpuTest.close();
    }
    slabs.close();
  }

  /**
   * Own segments that UCX may read for peers: registered as a whole when the first peer asks, and
   * until the segment is closed. Thread safe.
   */
  public static final class RegisteredSegments {
    private static final Logger LOG = LoggerFactory.getLogger(RegisteredSegments.class);

    /** What is refused may be taken later, but trying costs time and a line of UCX's each. */
    private static final Duration PAUSE = Duration.ofMinutes(1);

    private final UcxEngine engine;
    private final SegmentResolver segments;
    private final Clock clock;

    /** Segments that UCX did not take, and when. */
    private final Map<Long, Long> refused = new ConcurrentHashMap<>();

    /**
     * @param segments finds own segments
     * @param clock by which it pauses
     */
    public RegisteredSegments(
        final UcxEngine engine, final SegmentResolver segments, final Clock clock) {
      this.engine = engine;
      this.segments = segments;
      this.clock = clock;
    }

    /** The segment, unless it is gone. */
    public @Nullable SegmentMemory memory(final long segmentId) {
      return SegmentIds.tier(segmentId) == null ? null : segments.resolve(segmentId);
    }

    /** The key by which peers read a segment, if it has one. The caller holds a lease on it. */
    public byte @Nullable [] key(final SegmentMemory memory) {
      final UcxMemory registered = registered(memory);
      return registered == null ? null : registered.key();
    }

    /** What UCX knows a segment by, if it can know it. The caller holds something of it. */
    @Nullable UcxMemory registered(final SegmentMemory memory) {
      final Tier kind = SegmentIds.tier(memory.id());
      if (kind == null || kind == Tier.DEVICE && !engine.reachesGpuMemory()) {
        return null;
      }
      final Long last = refused.get(memory.id());
      if (last != null && clock.since(last) < PAUSE.toNanos()) {
        return null;
      }
      try {
        return memory.attach(
            UcxMemory.class, () -> engine.register(kind, memory.address(), memory.bytes()));
      } catch (final UcxException e) {
        if (refused.put(memory.id(), clock.nanos()) == null) {
          ShuffleCode.SEGMENT_NOT_REGISTERED
              .says("cannot register a segment with UCX; its blocks are sent for now")
              .at("segment " + memory.id())
              .because(e)
              .warn(LOG);
        }
        return null;
      }
    }
  }

  /**
   * GPU memory for bytes of other nodes: regions of the executor's own pool. UCX registers their
   * segments once and not for each block, unless copies of this GPU fill them. Thread safe; the
   * pool owns the memory.
   */
  public static final class GpuSlabs {
    private final Pool pool;

    /** Absent, as the device is, if copies of this GPU fill them. */
    private final @Nullable RegisteredSegments segments;

    private final @Nullable Device device;

    /**
     * @param segments register what UCX fills; absent, as the device is, if copies of this GPU do
     * @param device whose memory the pool has
     */
    public GpuSlabs(
        final Pool pool,
        final @Nullable RegisteredSegments segments,
        final @Nullable Device device) {
      this.pool = pool;
      this.segments = segments;
      this.device = device;
    }

    /** Makes what gets have written visible to the GPU; nothing else may use it before. */
    public void received() {
      if (device != null) {
        device.flushAdapterWrites();
      }
    }

    /** What UCX knows a slab's memory by; absent for host memory, and for what it does not know. */
    public static @Nullable UcxMemory registration(final Slab slab) {
      return slab instanceof GpuSlab gpu ? gpu.registered() : null;
    }

    /** Memory of at least so many bytes; absent if the pool or UCX has none for it now. */
    public @Nullable Slab tryTake(final long bytes) {
      final Region region;
      try {
        region = pool.allocate(bytes);
      } catch (final PoolFullException e) {
        return null; // Map outputs go first: the blocks come over pinned host memory.
      }
      if (segments == null) {
        return new Slab(region.address(), region::release);
      }
      try (Undo undo = new Undo(region::release)) {
        final UcxMemory registered = segments.registered(region.memory());
        if (registered == null) {
          return null;
        }
        return undo.keep(new GpuSlab(region.address(), registered, region::release));
      }
    }

    /** GPU memory that UCX receives in, and what UCX knows it by. Thread safe. */
    static final class GpuSlab extends Slab {
      private final UcxMemory registered;

      /**
       * @param giveBack run once, by whoever drops the last reference
       */
      GpuSlab(final long address, final UcxMemory registered, final Runnable giveBack) {
        super(address, giveBack);
        this.registered = registered;
      }

      UcxMemory registered() {
        return registered;
      }
    }
  }
}
