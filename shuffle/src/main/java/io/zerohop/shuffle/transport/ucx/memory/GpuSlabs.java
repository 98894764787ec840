package io.zerohop.shuffle.transport.ucx.memory;

import io.zerohop.device.Device;
import io.zerohop.shuffle.pool.Pool;
import io.zerohop.shuffle.pool.PoolFullException;
import io.zerohop.shuffle.pool.Region;
import io.zerohop.shuffle.transport.remote.memory.Slabs.Slab;
import io.zerohop.shuffle.transport.ucx.engine.UcxEngine.UcxMemory;
import io.zerohop.shuffle.transport.ucx.memory.TransferMemory.RegisteredSegments;
import org.jspecify.annotations.Nullable;

/**
 * GPU memory for bytes of other nodes: regions of the executor's own pool. UCX registers their
 * segments once and not for each block, unless copies of this GPU fill them. Thread safe; the pool
 * owns the memory.
 */
public final class GpuSlabs {
  private final Pool pool;

  /** Absent, as the device is, if copies of this GPU fill them. */
  private final @Nullable RegisteredSegments segments;

  private final @Nullable Device device;

  private GpuSlabs(final Pool pool) {
    this.pool = pool;
    this.segments = null;
    this.device = null;
  }

  /**
   * Those that UCX fills.
   *
   * @param device whose memory the pool has
   */
  public GpuSlabs(final Pool pool, final RegisteredSegments segments, final Device device) {
    this.pool = pool;
    this.segments = segments;
    this.device = device;
  }

  /** For copies of this GPU: nothing of it is registered. */
  public static GpuSlabs notRegistered(final Pool pool) {
    return new GpuSlabs(pool);
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
    boolean done = false;
    try {
      final UcxMemory registered = segments.registered(region.memory());
      if (registered == null) {
        return null;
      }
      done = true;
      return new GpuSlab(region.address(), registered, region::release);
    } finally {
      if (!done) {
        region.release();
      }
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
