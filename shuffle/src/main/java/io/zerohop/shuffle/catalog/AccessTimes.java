package io.zerohop.shuffle.catalog;

import io.zerohop.device.posix.Clock;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;

/**
 * The time of each shuffle's last use on this executor. Uses are beginning or publishing a map
 * output, and opening a window of blocks of any owner. Reducers read from all executors, so what
 * nobody here reads any more is most likely read nowhere. Thread safe.
 */
public final class AccessTimes {
  private final Map<Integer, AtomicLong> used = new ConcurrentHashMap<>();
  private final Clock clock;
  private final long start;

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
    final AtomicLong last = used.get(shuffleId);
    return clock.since(last == null ? start : last.get());
  }

  /** Returns the idle time in seconds, for messages. */
  public long idleSeconds(final int shuffleId) {
    return TimeUnit.NANOSECONDS.toSeconds(idleNanos(shuffleId));
  }

  /** The shuffle is gone. */
  public void forget(final int shuffleId) {
    used.remove(shuffleId);
  }
}
