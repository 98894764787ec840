package io.zerohop.shuffle.pool;

import io.zerohop.device.SegmentHandle;
import java.util.List;

/** The pools of one executor: host memory, and GPU memory if it has any. Thread safe; owns them. */
public final class Tiers implements SegmentResolver, AutoCloseable {
  private final Pool host;
  private final Pool device;
  private final List<Pool> all;
  private final Overflow overflow = new Overflow();

  /**
   * @param device null if there is no GPU
   */
  public Tiers(final Pool host, final Pool device) {
    this.host = host;
    this.device = device;
    this.all = device == null ? List.of(host) : List.of(host, device);
  }

  /** The pool of a tier; null if there is none. */
  public Pool of(final Tier tier) {
    return tier == Tier.HOST ? host : device;
  }

  /** Returns the counts of blocks that found no room. */
  public Overflow overflow() {
    return overflow;
  }

  /** All pools. */
  public List<Pool> all() {
    return all;
  }

  @Override
  public SegmentMemory resolve(final long segmentId) {
    final Tier tier = SegmentIds.tier(segmentId);
    final Pool pool = tier == null ? null : of(tier);
    return pool == null ? null : pool.resolve(segmentId);
  }

  /** A new handle to a segment that the caller closes; null if it is gone. Does not wait. */
  public SegmentHandle export(final long segmentId) {
    final Tier tier = SegmentIds.tier(segmentId);
    final Pool pool = tier == null ? null : of(tier);
    return pool == null ? null : pool.export(segmentId);
  }

  /**
   * Closes all pools.
   *
   * @throws IllegalStateException as {@link Pool#close}
   */
  @Override
  public void close() {
    try {
      host.close();
    } finally {
      if (device != null) {
        device.close();
      }
    }
  }
}
