package io.zerohop.shuffle.transport.mapped;

import io.zerohop.device.posix.Clock;
import java.time.Duration;
import java.util.HashMap;
import java.util.HashSet;
import java.util.Map;
import java.util.Set;
import java.util.function.LongPredicate;

/**
 * Records on an executor's side which of its segments a keeper holds. Thread safe; nothing waits
 * but {@link #awaitKept}.
 */
public final class Keeping {
  private final Clock clock;

  /** The connection over which a segment was said to be held, by the segment's id. */
  private final Map<Long, Long> kept = new HashMap<>();

  /** Segments that no keeper will hold for now. */
  private final Set<Long> unkept = new HashSet<>();

  private final Set<Long> keepers = new HashSet<>();

  /** Whether a wait came to its limit, and no keeper has held anything since. */
  private boolean isLate;

  /**
   * @param clock by which waits end
   */
  public Keeping(final Clock clock) {
    this.clock = clock;
  }

  /** A peer asks for segments as a keeper does. */
  synchronized void connected(final long connection) {
    keepers.add(connection);
  }

  /** A keeper holds a segment. */
  synchronized void kept(final long connection, final long segmentId) {
    if (keepers.contains(connection)) {
      kept.put(segmentId, connection);
      unkept.remove(segmentId);
      isLate = false;
      notifyAll();
    }
  }

  /** A keeper does not hold a segment, or may not. */
  synchronized void unkept(final long connection, final long segmentId) {
    if (keepers.contains(connection)) {
      unkept.add(segmentId);
      notifyAll();
    }
  }

  /** A connection ended; if it was the keeper's, nothing is kept that it held. */
  synchronized void disconnected(final long connection) {
    if (keepers.remove(connection)) {
      kept.values().removeIf(of -> of == connection);
      unkept.clear();
      isLate = false;
      notifyAll();
    }
  }

  /** Forgets segments that are gone. */
  public synchronized void retain(final LongPredicate inUse) {
    kept.keySet().removeIf(id -> !inUse.test(id));
    unkept.removeIf(id -> !inUse.test(id));
  }

  /** Returns whether a keeper is connected. */
  public synchronized boolean hasKeeper() {
    return !keepers.isEmpty();
  }

  /**
   * Returns whether a keeper holds all of some segments. Waits for it as long as one is connected
   * that has said nothing else, and was in time for those that waited last.
   *
   * @param limit of the wait
   */
  public synchronized boolean awaitKept(final Set<Long> segments, final Duration limit) {
    final long end = clock.in(limit);
    try {
      while (!kept.keySet().containsAll(segments)) {
        if (keepers.isEmpty() || isLate || segments.stream().anyMatch(unkept::contains)) {
          return false;
        }
        if (clock.isOver(end)) {
          isLate = true;
          return false;
        }
        clock.await(this, clock.left(end));
      }
      return true;
    } catch (final InterruptedException e) {
      Thread.currentThread().interrupt();
      return false;
    }
  }
}
