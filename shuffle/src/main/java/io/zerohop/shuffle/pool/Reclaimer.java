package io.zerohop.shuffle.pool;

import java.util.ArrayDeque;
import java.util.Deque;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.function.Predicate;

/**
 * Holds retired regions until the last reader that may see them has passed. Thread safe. Owns one
 * reference of each region it was given.
 */
public final class Reclaimer {
  private final LeaseBarrier barrier;
  private final Deque<Retired> waiting = new ArrayDeque<>();

  public Reclaimer(final LeaseBarrier barrier) {
    this.barrier = barrier;
  }

  /**
   * Takes over regions that were just unpublished and releases them at once, or later from {@link
   * #poll}.
   */
  public void retire(final List<Region> retired) {
    if (retired.isEmpty()) {
      return;
    }
    final LeaseBarrier.Snapshot snapshot = barrier.snapshot();
    if (snapshot.passed()) {
      retired.forEach(Region::release);
      return;
    }
    synchronized (this) {
      waiting.add(new Retired(List.copyOf(retired), snapshot));
    }
  }

  /**
   * Releases what no reader can see any more. Does not block on readers. A region counts as waiting
   * until it is released, so who sees that none waits finds its memory free.
   */
  public void poll() {
    releaseIf(false);
  }

  /** Releases everything, readers or not: the memory is about to be closed for good. */
  public void drop() {
    releaseIf(true);
  }

  private void releaseIf(final boolean all) {
    final Set<Retired> passed = new HashSet<>();
    synchronized (this) {
      for (final Retired retired : waiting) {
        if (!retired.passed && (all || retired.snapshot.passed())) {
          retired.passed = true;
          passed.add(retired);
        }
      }
    }
    if (passed.isEmpty()) {
      return;
    }
    // Not under the lock: a segment that becomes empty may be unmapped.
    passed.forEach(retired -> retired.regions.forEach(Region::release));
    synchronized (this) {
      waiting.removeAll(passed);
    }
  }

  /** Bytes of such regions that wait for readers. */
  public synchronized long waitingBytes(final Predicate<Region> which) {
    return waiting.stream()
        .flatMap(retired -> retired.regions.stream())
        .filter(which)
        .mapToLong(Region::bytes)
        .sum();
  }

  /** Regions that wait for readers. */
  public synchronized int waitingRegions() {
    return waiting.stream().mapToInt(retired -> retired.regions.size()).sum();
  }

  private static final class Retired {
    private final List<Region> regions;
    private final LeaseBarrier.Snapshot snapshot;

    /** Whether somebody releases them; guarded by the reclaimer. */
    private boolean passed;

    Retired(final List<Region> regions, final LeaseBarrier.Snapshot snapshot) {
      this.regions = regions;
      this.snapshot = snapshot;
    }
  }

  /** Tracks the leases that are open now. */
  @FunctionalInterface
  public interface LeaseBarrier {

    /**
     * Remembers every lease that is open now. What was unpublished before the call is in use by
     * none but those: the call is a full fence between the unpublishing and the look at the leases.
     */
    Snapshot snapshot();

    /** The leases that were open at one moment. */
    @FunctionalInterface
    interface Snapshot {
      /**
       * Returns whether all of them have ended, or their readers are gone; once true, always true.
       */
      boolean passed();
    }
  }
}
