package io.zerohop.shuffle.pool;

import io.zerohop.device.SegmentHandle;
import io.zerohop.shuffle.log.ShuffleCode;
import java.util.EnumSet;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.atomic.LongAdder;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** The pools of one executor: host memory, and GPU memory if it has any. Thread safe; owns them. */
public final class Tiers implements SegmentResolver, AutoCloseable {
  private final Pool host;
  private final @Nullable Pool device;
  private final List<Pool> all;
  private final Overflow overflow = new Overflow();

  /**
   * @param device absent if there is no GPU
   */
  public Tiers(final Pool host, final @Nullable Pool device) {
    this.host = host;
    this.device = device;
    this.all = device == null ? List.of(host) : List.of(host, device);
  }

  /** The pool in host memory. */
  public Pool host() {
    return host;
  }

  /** The pool in GPU memory, if there is a GPU. */
  public @Nullable Pool device() {
    return device;
  }

  /**
   * The pool of a tier.
   *
   * @throws IllegalStateException if there is none, as there is no GPU
   */
  public Pool of(final Tier tier) {
    final Pool pool = find(tier);
    if (pool == null) {
      throw new IllegalStateException("this executor has no GPU, so it has no pool there");
    }
    return pool;
  }

  private @Nullable Pool find(final @Nullable Tier tier) {
    return tier == null ? null : tier == Tier.HOST ? host : device;
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
  public @Nullable SegmentMemory resolve(final long segmentId) {
    final Pool pool = find(SegmentIds.tier(segmentId));
    return pool == null ? null : pool.resolve(segmentId);
  }

  /** A new handle to a segment that the caller closes; absent if it is gone. Does not wait. */
  public @Nullable SegmentHandle export(final long segmentId) {
    final Pool pool = find(SegmentIds.tier(segmentId));
    return pool == null ? null : pool.export(segmentId);
  }

  /** The same; absent also of a segment that is borrowed, and goes back to its lender. */
  public @Nullable SegmentHandle exportOwn(final long segmentId) {
    return SegmentIds.isBorrowed(segmentId) ? null : export(segmentId);
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

  /**
   * A record of what found no room in a pool and went one tier down, as it was written or later. It
   * writes one line to the log for each shuffle and pool, with the key that would have made room,
   * and counts the bytes that left the GPU. Thread safe.
   */
  public static final class Overflow {
    private static final Logger LOG = LoggerFactory.getLogger(Overflow.class);

    private final Map<Integer, Set<Tier>> said = new HashMap<>();
    private final Map<Integer, Set<Tier>> saidMoved = new HashMap<>();
    private final LongAdder overflowed = new LongAdder();

    Overflow() {}

    /**
     * Says that a shuffle goes on one tier below a pool that is full.
     *
     * @return whether it was said; it is once for each shuffle and pool
     */
    public boolean say(final int shuffleId, final Tier from, final PoolFullException reason) {
      final boolean first = isFirst(said, shuffleId, from);
      if (first) {
        ShuffleCode.POOL_OUTGROWN
            .says("a shuffle has outgrown " + place(from) + " and continues in " + below(from))
            .at("shuffle " + shuffleId)
            .because(reason)
            .warn(LOG);
      }
      return first;
    }

    /**
     * Says that map outputs of a shuffle make room for others.
     *
     * @param idleSeconds since it was last used
     * @return whether it was said; it is once for each shuffle and pool
     */
    public boolean sayMoved(final int shuffleId, final Tier from, final long idleSeconds) {
      final boolean first = isFirst(saidMoved, shuffleId, from);
      if (first) {
        LOG.info(
            "moved idle shuffle {} (not used for {} s) from {} to {}; to keep it, {}",
            shuffleId,
            idleSeconds,
            place(from),
            below(from),
            from.remedy());
      }
      return first;
    }

    private static boolean isFirst(
        final Map<Integer, Set<Tier>> known, final int shuffleId, final Tier from) {
      synchronized (known) {
        return known.computeIfAbsent(shuffleId, id -> EnumSet.noneOf(Tier.class)).add(from);
      }
    }

    private static String place(final Tier tier) {
      return tier == Tier.DEVICE ? "GPU memory" : "host memory";
    }

    private static String below(final Tier tier) {
      return tier == Tier.DEVICE ? "host memory" : "files";
    }

    /** Counts bytes that went from the GPU to host memory instead. */
    public void overflowed(final long bytes) {
      overflowed.add(bytes);
    }

    /** Bytes that were counted since the start. */
    public long overflowedBytes() {
      return overflowed.sum();
    }

    /** Says it anew if the shuffle comes back; it is gone now. */
    public void forget(final int shuffleId) {
      for (final Map<Integer, Set<Tier>> known : List.of(said, saidMoved)) {
        synchronized (known) {
          known.remove(shuffleId);
        }
      }
    }
  }
}
