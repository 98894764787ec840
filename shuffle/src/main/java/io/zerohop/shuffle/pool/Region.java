package io.zerohop.shuffle.pool;

import io.zerohop.device.Device;
import io.zerohop.device.DeviceMemoryException;
import io.zerohop.device.HostBuffer;
import java.util.concurrent.atomic.AtomicInteger;
import org.agrona.UnsafeAccess;
import org.jspecify.annotations.Nullable;

/**
 * A range of the pool. Reference counted: made with one reference, returned to the pool when the
 * last one is released. Thread safe; the bytes are the holder's to order.
 */
public final class Region {
  private final Pool pool;
  private final PoolSegment segment;
  private final long offset;
  private final long bytes;
  private final AtomicInteger references = new AtomicInteger(1);

  Region(final Pool pool, final PoolSegment segment, final long offset, final long bytes) {
    this.pool = pool;
    this.segment = segment;
    this.offset = offset;
    this.bytes = bytes;
  }

  /** The segment it lies in. */
  public SegmentMemory memory() {
    return segment.memory();
  }

  /** The kind of memory it is. */
  public Tier tier() {
    return pool.tier();
  }

  /** Returns whether it lies in GPU memory of the own pool. */
  public boolean isOnOwnGpu() {
    return tier() == Tier.DEVICE && segment.loan() == null;
  }

  /** Returns whether a peer lends the memory that it lies in. */
  public boolean isBorrowed() {
    return segment.loan() != null;
  }

  /** Returns whether the peer wants that memory back. */
  public boolean isRecalled() {
    return segment.recalled();
  }

  /** Offset in the segment. */
  public int offset() {
    return (int) offset;
  }

  /** Address of its first byte. */
  public long address() {
    return segment.memory().address() + offset;
  }

  /** Size in bytes, as rounded up by the pool. */
  public long bytes() {
    return bytes;
  }

  /**
   * Takes one more reference.
   *
   * @return false if the region was already returned
   */
  public boolean retain() {
    for (; ; ) {
      final int count = references.get();
      if (count == 0) {
        return false;
      }
      if (references.compareAndSet(count, count + 1)) {
        return true;
      }
    }
  }

  /** Drops a reference; the last one returns the memory to the pool. */
  public void release() {
    final int count = references.decrementAndGet();
    if (count == 0) {
      pool.free(this);
    } else if (count < 0) {
      throw new IllegalStateException(
          "region " + offset + "+" + bytes + " of segment " + memory().id() + " released twice");
    }
  }

  PoolSegment segment() {
    return segment;
  }

  /**
   * The memory that the GPU writes for a region: the region itself, or pinned memory from which the
   * host copies it, if the GPU does not reach the region. For one thread; owns the pinned memory,
   * and may be closed when no copy to it is under way.
   */
  public static final class PinnedTarget implements AutoCloseable {
    private final Region region;
    private final long bytes;

    /** Absent if the GPU reaches the region. */
    private final @Nullable HostBuffer staging;

    private PinnedTarget(
        final Region region, final long bytes, final @Nullable HostBuffer staging) {
      this.region = region;
      this.bytes = bytes;
      this.staging = staging;
    }

    /**
     * A target for the first bytes of a region, which has to stay until this is closed.
     *
     * @throws DeviceMemoryException if there is no pinned memory that it would need
     */
    public static PinnedTarget of(final Region region, final long bytes, final Device gpu) {
      final boolean reached = region.tier() == Tier.DEVICE || region.memory().pin(gpu);
      return new PinnedTarget(region, bytes, reached ? null : gpu.hostBuffer(bytes));
    }

    /** Returns the address at which the GPU writes the first byte. */
    public long address() {
      return staging == null ? region.address() : staging.address();
    }

    /**
     * Returns whether the GPU does not write to the region itself, so that {@link #arrive} has to
     * follow.
     */
    public boolean isStaged() {
      return staging != null;
    }

    /** Puts into the region what the GPU has written; to be called when its copies have ended. */
    public void arrive() {
      if (staging != null) {
        UnsafeAccess.UNSAFE.copyMemory(staging.address(), region.address(), bytes);
      }
    }

    @Override
    public void close() {
      if (staging != null) {
        staging.close();
      }
    }
  }
}
