package io.zerohop.shuffle.catalog;

import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;

/**
 * When each shuffle was last used on this executor: a map output of it begun or published, a window
 * of it opened, whoever owns the blocks. Reducers read from all executors, so what nobody here
 * reads any more is most likely read nowhere. Thread safe.
 */
public final class AccessTimes {
  private final Map<Integer, AtomicLong> used = new ConcurrentHashMap<>();
  private final long start = System.nanoTime();

  /** Notes a use. */
  public void touch(final int shuffleId) {
    final AtomicLong last = used.get(shuffleId);
    if (last == null) {
      used.computeIfAbsent(shuffleId, id -> new AtomicLong()).set(System.nanoTime());
    } else {
      last.lazySet(System.nanoTime());
    }
  }

  /** Nanoseconds since the last use. */
  public long idleNanos(final int shuffleId) {
    final AtomicLong last = used.get(shuffleId);
    return System.nanoTime() - (last == null ? start : last.get());
  }

  /** The same in seconds, for messages. */
  public long idleSeconds(final int shuffleId) {
    return TimeUnit.NANOSECONDS.toSeconds(idleNanos(shuffleId));
  }

  /** The shuffle is gone. */
  public void forget(final int shuffleId) {
    used.remove(shuffleId);
  }
}
