package io.zerohop.shuffle.transport.samenode;

import com.google.errorprone.annotations.concurrent.GuardedBy;
import io.zerohop.device.posix.Clock;
import io.zerohop.shuffle.pool.SegmentIds;
import java.time.Duration;
import java.util.Arrays;
import java.util.HashMap;
import java.util.HashSet;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.atomic.AtomicReferenceArray;
import java.util.function.LongPredicate;
import java.util.function.Predicate;
import org.jspecify.annotations.Nullable;

/**
 * Records on an executor's side which of its segments a keeper holds. Thread safe; nothing waits
 * but {@link #awaitKept}.
 */
public final class Keeping {
  /** In place of a port: no keeper holds it. */
  public static final int NOT_KEPT = -1;

  private final Clock clock;

  /**
   * What keepers hold, by the slot of its id. Changed by who has the lock, and read without: map
   * tasks look whenever they publish.
   */
  private final AtomicReferenceArray<@Nullable Held> kept =
      new AtomicReferenceArray<>(SegmentIds.MAX_SLOTS);

  /** Segments that no keeper will hold for now. */
  private final Set<Long> unkept = new HashSet<>();

  /** Ports at which keepers answer other nodes, by connection; 0 for none. */
  private final Map<Long, Integer> keepers = new HashMap<>();

  /** Of the keeper that connected last, also after its end. */
  private int lastPort;

  /** Whether that one answers other nodes also what lies in GPU memory. */
  private volatile boolean copiesGpu;

  private volatile boolean isEnding;

  /** Whether a wait came to its limit, and no keeper has held anything since. */
  private boolean isLate;

  /**
   * A segment that a keeper holds.
   *
   * @param connection over which it said so
   * @param port of that keeper
   */
  private record Held(long segmentId, long connection, int port) {}

  /**
   * @param clock by which waits end
   */
  public Keeping(final Clock clock) {
    this.clock = clock;
  }

  /** This executor ends from now on, and keepers are not to take it for one that lives. */
  public void ends() {
    isEnding = true;
  }

  /** Whether this executor ends. Does not wait. */
  boolean isEnding() {
    return isEnding;
  }

  /**
   * A peer asks for segments as a keeper does, which answers other nodes at a port, or at none.
   *
   * @param withGpu whether it answers them also what lies in GPU memory
   */
  synchronized void connected(final long connection, final int port, final boolean withGpu) {
    keepers.put(connection, port);
    lastPort = port;
    copiesGpu = withGpu;
  }

  /** Whether the keeper that connected last answers other nodes also what lies in GPU memory. */
  public boolean copiesGpu() {
    return copiesGpu;
  }

  /** A keeper holds a segment. */
  synchronized void kept(final long connection, final long segmentId) {
    final Integer port = keepers.get(connection);
    if (port != null) {
      final int slot = SegmentIds.slot(segmentId);
      final Held before = kept.get(slot);
      // Ids of a slot grow; an old one may be said late by a keeper that is just being replaced.
      if (before == null || before.segmentId <= segmentId) {
        kept.set(slot, new Held(segmentId, connection, port));
      }
      unkept.remove(segmentId);
      isLate = false;
      notifyAll();
    }
  }

  /** A keeper does not hold a segment, or may not. */
  synchronized void unkept(final long connection, final long segmentId) {
    if (keepers.containsKey(connection)) {
      unkept.add(segmentId);
      notifyAll();
    }
  }

  /** A connection ended; if it was the keeper's, nothing is kept that it held. */
  synchronized void disconnected(final long connection) {
    if (keepers.remove(connection) != null) {
      removeIf(held -> held.connection == connection);
      unkept.clear();
      isLate = false;
      notifyAll();
    }
  }

  /** Forgets segments that are gone. */
  public synchronized void retain(final LongPredicate inUse) {
    removeIf(held -> !inUse.test(held.segmentId));
    unkept.removeIf(id -> !inUse.test(id));
  }

  @GuardedBy("this")
  private void removeIf(final Predicate<Held> isGone) {
    for (int slot = 0; slot < kept.length(); slot++) {
      final Held held = kept.get(slot);
      if (held != null && isGone.test(held)) {
        kept.set(slot, null);
      }
    }
  }

  /**
   * Returns the port of the keeper that connected last, which map statuses name; 0 if it answers no
   * other nodes, or none has connected.
   */
  public synchronized int lastPort() {
    return lastPort;
  }

  /** Returns whether a keeper is connected. */
  public synchronized boolean hasKeeper() {
    return !keepers.isEmpty();
  }

  /**
   * Returns the port of the keeper that holds all of some segments. Waits for it as long as one is
   * connected that has said nothing else, and was in time for those that waited last.
   *
   * @param segments their ids, at least one
   * @param limit of the wait
   * @return 0 if it answers no other nodes; {@link #NOT_KEPT} if no keeper holds them all
   */
  public int awaitKept(final long[] segments, final Duration limit) {
    final int port = portOf(segments);
    return port == NOT_KEPT && segments.length > 0 ? await(segments, limit) : port;
  }

  private int portOf(final long[] segments) {
    Held one = null;
    for (final long id : segments) {
      final Held held = kept.get(SegmentIds.slot(id));
      if (held == null
          || held.segmentId != id
          || one != null && held.connection != one.connection) {
        return NOT_KEPT;
      }
      one = held;
    }
    return one == null ? NOT_KEPT : one.port;
  }

  private synchronized int await(final long[] segments, final Duration limit) {
    final long end = clock.in(limit);
    try {
      for (; ; ) {
        final int port = portOf(segments);
        if (port != NOT_KEPT
            || keepers.isEmpty()
            || isLate
            || Arrays.stream(segments).anyMatch(unkept::contains)) {
          return port;
        }
        if (clock.isOver(end)) {
          isLate = true;
          return NOT_KEPT;
        }
        clock.await(this, clock.left(end));
      }
    } catch (final InterruptedException e) {
      Thread.currentThread().interrupt();
      return NOT_KEPT;
    }
  }
}
