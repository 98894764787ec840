package io.zerohop.shuffle.pool;

import java.util.EnumMap;
import java.util.EnumSet;
import java.util.HashMap;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.atomic.LongAdder;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * What found no room in a pool and went one tier down: how many bytes, and one line in the log for
 * each shuffle and pool, with the key that would have made room. Thread safe.
 */
public final class Overflow {
  private static final Logger LOG = LoggerFactory.getLogger(Overflow.class);

  private final Map<Tier, LongAdder> bytes = new EnumMap<>(Tier.class);
  private final Map<Integer, Set<Tier>> said = new HashMap<>();

  Overflow() {
    for (final Tier tier : Tier.values()) {
      bytes.put(tier, new LongAdder());
    }
  }

  /**
   * Notes that a map output, or one batch of it, goes elsewhere.
   *
   * @param from the pool that had no room
   * @param count how many bytes; 0 if it is not known yet
   * @return whether it is the first of its shuffle, and was said
   */
  public boolean note(
      final int shuffleId, final Tier from, final long count, final PoolFullException reason) {
    bytes.get(from).add(count);
    final boolean first;
    synchronized (said) {
      first = said.computeIfAbsent(shuffleId, id -> EnumSet.noneOf(Tier.class)).add(from);
    }
    if (first) {
      LOG.warn(
          "shuffle {} has outgrown its {} here and goes on in {}: {}",
          shuffleId,
          from == Tier.DEVICE ? "GPU memory" : "host memory",
          from == Tier.DEVICE ? "host memory" : "files",
          reason.getMessage());
    }
    return first;
  }

  /** Bytes that found no room in a pool since the start. */
  public long bytes(final Tier from) {
    return bytes.get(from).sum();
  }

  /** Says it anew if the shuffle comes back; it is gone now. */
  public void forget(final int shuffleId) {
    synchronized (said) {
      said.remove(shuffleId);
    }
  }
}
