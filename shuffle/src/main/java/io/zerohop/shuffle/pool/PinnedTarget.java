package io.zerohop.shuffle.pool;

import io.zerohop.device.Device;
import io.zerohop.device.DeviceMemoryException;
import io.zerohop.device.HostBuffer;
import org.agrona.UnsafeAccess;
import org.jspecify.annotations.Nullable;

/**
 * The memory that the GPU writes for a region: the region itself, or pinned memory from which the
 * host copies it, if the GPU does not reach the region. For one thread; owns the pinned memory, and
 * may be closed when no copy to it is under way.
 */
public final class PinnedTarget implements AutoCloseable {
  private final Region region;
  private final long bytes;

  /** Absent if the GPU reaches the region. */
  private final @Nullable HostBuffer staging;

  private PinnedTarget(final Region region, final long bytes, final @Nullable HostBuffer staging) {
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
