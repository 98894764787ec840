package io.zerohop.shuffle.transport.mapped;

import io.zerohop.device.posix.Clock;
import java.time.Duration;
import java.util.HashMap;
import java.util.HashSet;
import java.util.Map;
import java.util.Set;

/**
 * Records on an executor's side what its keeper holds: the executor's own segments, and shuffles of
 * executors that have ended. Thread safe; nothing waits but {@link #awaitKept}.
 */
public final class Keeping {
  private final Clock clock;

  /** The connection over which a segment was said to be held, by the segment's id. */
  private final Map<Long, Long> kept = new HashMap<>();

  private final Set<Long> keepers = new HashSet<>();
  private final Set<Integer> left = new HashSet<>();
  private final Set<Integer> dropped = new HashSet<>();

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
      notifyAll();
    }
  }

  /** A connection ended; if it was the keeper's, nothing is kept that it held. */
  synchronized void disconnected(final long connection) {
    if (keepers.remove(connection)) {
      kept.values().removeIf(of -> of == connection);
      left.clear();
      notifyAll();
    }
  }

  /** A keeper holds something of a shuffle; returns whether that is to go. */
  synchronized boolean isDropped(final int shuffleId) {
    if (dropped.contains(shuffleId)) {
      left.remove(shuffleId);
      return true;
    }
    left.add(shuffleId);
    return false;
  }

  /** The driver has dropped a shuffle. */
  public synchronized void drop(final int shuffleId) {
    dropped.add(shuffleId);
  }

  /** A shuffle is written here, perhaps after it was dropped. */
  public synchronized void begin(final int shuffleId) {
    dropped.remove(shuffleId);
  }

  /** Returns the shuffles that the keeper holds for executors that have ended. */
  public synchronized Set<Integer> left() {
    return Set.copyOf(left);
  }

  /** Returns whether a keeper is connected. */
  public synchronized boolean hasKeeper() {
    return !keepers.isEmpty();
  }

  /**
   * Returns whether a keeper holds all of some segments. Waits for it, as long as one is connected.
   *
   * @param limit of the wait
   */
  public synchronized boolean awaitKept(final Set<Long> segments, final Duration limit) {
    final long end = clock.in(limit);
    try {
      while (!kept.keySet().containsAll(segments)) {
        if (keepers.isEmpty() || clock.isOver(end)) {
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
