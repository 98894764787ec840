package io.zerohop.shuffle.catalog;

import io.zerohop.device.posix.Clock;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import java.util.stream.Collectors;

/**
 * The time of each shuffle's last use on this executor. Uses are beginning or publishing a map
 * output, and opening a window of blocks of any owner. Reducers read from all executors, so what
 * nobody here reads any more is most likely read nowhere. Beside them is what the driver said last
 * of queries that have ended: a use since then counts more, since the driver may not know of it.
 * Thread safe.
 */
public final class AccessTimes {
  private final Map<Integer, AtomicLong> used = new ConcurrentHashMap<>();
  private final Clock clock;
  private final long start;

  /** When the last query of a shuffle ended, by the clock; has none that a query still uses. */
  private volatile Map<Integer, Long> ends = Map.of();

  /**
   * @param clock by which a shuffle is unused
   */
  public AccessTimes(final Clock clock) {
    this.clock = clock;
    this.start = clock.nanos();
  }

  /** Notes a use. */
  public void touch(final int shuffleId) {
    final AtomicLong last = used.get(shuffleId);
    if (last == null) {
      used.computeIfAbsent(shuffleId, id -> new AtomicLong()).set(clock.nanos());
    } else {
      last.lazySet(clock.nanos());
    }
  }

  /** Nanoseconds since the last use. */
  public long idleNanos(final int shuffleId) {
    return clock.since(last(shuffleId));
  }

  private long last(final int shuffleId) {
    final AtomicLong last = used.get(shuffleId);
    return last == null ? start : last.get();
  }

  /** Returns the idle time in seconds, for messages. */
  public long idleSeconds(final int shuffleId) {
    return TimeUnit.NANOSECONDS.toSeconds(idleNanos(shuffleId));
  }

  /**
   * Takes the place of what was known of queries.
   *
   * @param nanosSince time in nanoseconds since the last query of a shuffle ended, by shuffle
   */
  public void finished(final Map<Integer, Long> nanosSince) {
    final long now = clock.nanos();
    ends =
        nanosSince.entrySet().stream()
            .collect(
                Collectors.toUnmodifiableMap(Map.Entry::getKey, entry -> now - entry.getValue()));
  }

  /** Returns whether all queries that used it have ended, and nobody has used it since. */
  public boolean isFinished(final int shuffleId) {
    final Long end = ends.get(shuffleId);
    return end != null && end - last(shuffleId) >= 0;
  }

  /** The shuffle is gone. */
  public void forget(final int shuffleId) {
    used.remove(shuffleId);
  }
}
