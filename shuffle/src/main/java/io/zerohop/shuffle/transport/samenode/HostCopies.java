package io.zerohop.shuffle.transport.samenode;

import com.google.errorprone.annotations.concurrent.GuardedBy;
import io.zerohop.device.Segment;
import io.zerohop.device.SegmentHandle;
import io.zerohop.device.posix.Clock;
import java.time.Duration;
import java.util.HashMap;
import java.util.HashSet;
import java.util.Map;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/**
 * Copies in host memory of the GPU memory that one executor has left, for readers without a GPU and
 * for files, and whether somebody wants them. A process that uses the GPU makes them. Owns the host
 * memory. Thread safe; nothing waits.
 */
public final class HostCopies {
  /** What could not be copied for a file is left alone for so long. */
  private static final Duration PAUSE = Duration.ofMinutes(1);

  /** Without progress for so long, GPU memory that is to be free is given up. */
  private static final Duration LEAVE_LIMIT = Duration.ofMinutes(1);

  private final boolean arePossible;
  private final Clock clock;

  /** By the ids of the segments. */
  @GuardedBy("this")
  private final Map<Long, Segment> copies = new HashMap<>();

  /** Those of them that are complete. */
  @GuardedBy("this")
  private final Set<Long> complete = new HashSet<>();

  private volatile boolean areWanted;

  /** Whether somebody waits for them who cannot read the memory otherwise. */
  private volatile boolean areAwaited;

  /** When they may be made again for files. */
  @GuardedBy("this")
  private long againAt;

  /** When the GPU's memory is given up, unless something comes of it; absent if it may stay. */
  @GuardedBy("this")
  private @Nullable Long leaveBy;

  /** The bytes in files when that was determined. */
  @GuardedBy("this")
  private long leftBytes;

  /**
   * @param arePossible whether the keeper has somebody who makes them
   */
  HostCopies(final boolean arePossible, final Clock clock) {
    this.arePossible = arePossible;
    this.clock = clock;
    this.againAt = clock.nanos();
  }

  /**
   * Has them made soon, for a file.
   *
   * @return false if that cannot be, or failed a moment ago
   */
  synchronized boolean want() {
    final boolean areMade = arePossible && clock.isOver(againAt);
    areWanted |= areMade;
    return areMade;
  }

  /**
   * Has them made soon, for a reader.
   *
   * @return false if that cannot be
   */
  synchronized boolean await() {
    areWanted |= arePossible;
    areAwaited |= arePossible;
    return arePossible;
  }

  /** Whether they are to be made, or just are. */
  public boolean areWanted() {
    return areWanted;
  }

  /** Whether readers wait for them. */
  public boolean areAwaited() {
    return areAwaited;
  }

  /** Nobody makes them any more. Closes those that are not complete. */
  synchronized void ended(final boolean areAll) {
    final Set<Long> unfinished = new HashSet<>(copies.keySet());
    unfinished.removeAll(complete);
    unfinished.forEach(this::close);
    againAt = areAll ? clock.nanos() : clock.in(PAUSE);
    areWanted = false;
    areAwaited = false;
  }

  /**
   * Has what keeps GPU memory in use go to files, by way of copies.
   *
   * @param bytesInFiles of the same executor
   * @return whether that may still come: copies are wanted, or files have grown within a minute
   */
  synchronized boolean leave(final long bytesInFiles) {
    Long by = leaveBy;
    if (by == null || areWanted || bytesInFiles != leftBytes) {
      by = clock.in(LEAVE_LIMIT);
      leaveBy = by;
      leftBytes = bytesInFiles;
    }
    return arePossible && !clock.isOver(by);
  }

  /** Whether it is to go. */
  synchronized boolean isLeaving() {
    return leaveBy != null;
  }

  /** Whether there is memory for a copy. */
  public synchronized boolean hasMemoryFor(final long segmentId) {
    return copies.containsKey(segmentId);
  }

  /**
   * Takes memory for a copy.
   *
   * @param copy closed here if there is one
   */
  synchronized void add(final long segmentId, final Segment copy) {
    if (copies.putIfAbsent(segmentId, copy) != null) {
      copy.close();
    }
  }

  /** Returns a descriptor for who makes the copy, which the caller closes; absent otherwise. */
  synchronized @Nullable SegmentHandle forCopier(final long segmentId) {
    final Segment copy = complete.contains(segmentId) ? null : copies.get(segmentId);
    return copy == null ? null : copy.export();
  }

  /** A copy is complete; nobody writes to it any more. */
  synchronized void done(final long segmentId) {
    if (copies.containsKey(segmentId)) {
      complete.add(segmentId);
    }
  }

  /** Whether there is a complete copy. */
  synchronized boolean has(final long segmentId) {
    return complete.contains(segmentId);
  }

  /** Returns a descriptor of a complete copy, which the caller closes; absent if there is none. */
  synchronized @Nullable SegmentHandle export(final long segmentId) {
    final Segment copy = has(segmentId) ? copies.get(segmentId) : null;
    return copy == null ? null : copy.export();
  }

  /** Bytes of all of them. */
  synchronized long bytes() {
    return copies.values().stream().mapToLong(Segment::bytes).sum();
  }

  /** Closes those that are complete; returns whether there were any. */
  synchronized boolean closeComplete() {
    final Set<Long> all = new HashSet<>(complete);
    all.forEach(this::close);
    return !all.isEmpty();
  }

  /** Closes the copy of a segment, if there is one. */
  synchronized void close(final long segmentId) {
    complete.remove(segmentId);
    final Segment copy = copies.remove(segmentId);
    if (copy != null) {
      copy.close();
    }
  }
}
