package io.zerohop.shuffle.pool;

import io.zerohop.shuffle.log.ShuffleCode;
import java.util.EnumSet;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.atomic.LongAdder;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Counts and logs blocks that found no room in a pool and went one tier down. Each shuffle and pool
 * has one line, with the key that gives more room. Thread safe.
 */
public final class Overflow {
  private static final Logger LOG = LoggerFactory.getLogger(Overflow.class);

  private final Map<Integer, Set<Tier>> said = new HashMap<>();
  private final Map<Integer, Set<Tier>> saidMoved = new HashMap<>();
  private final LongAdder overflowed = new LongAdder();

  Overflow() {}

  /**
   * Logs that a shuffle continues one tier below a full pool.
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
   * Logs that map outputs of a shuffle make room for others.
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

  /** Forgets a shuffle that is gone, so that it is logged again if it comes back. */
  public void forget(final int shuffleId) {
    for (final Map<Integer, Set<Tier>> known : List.of(said, saidMoved)) {
      synchronized (known) {
        known.remove(shuffleId);
      }
    }
  }
}
