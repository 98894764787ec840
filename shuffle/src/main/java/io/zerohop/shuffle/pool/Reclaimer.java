package io.zerohop.shuffle.pool;

import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.List;

/**
 * Holds retired regions until the last reader that may see them has passed. Thread safe. Owns one
 * reference of each region it was given.
 */
public final class Reclaimer {
  private final LeaseBarrier barrier;
  private final Deque<Retired> waiting = new ArrayDeque<>();
  private int regions;

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
      regions += retired.size();
    }
  }

  /** Releases what no reader can see any more. Does not block on readers. */
  public void poll() {
    final List<Region> passed = new ArrayList<>();
    synchronized (this) {
      waiting.removeIf(
          retired -> {
            if (!retired.snapshot.passed()) {
              return false;
            }
            passed.addAll(retired.regions);
            return true;
          });
      regions -= passed.size();
    }
    passed.forEach(Region::release);
  }

  /** Releases everything, readers or not: the memory is about to be closed for good. */
  public void drop() {
    final List<Region> dropped = new ArrayList<>();
    synchronized (this) {
      waiting.forEach(retired -> dropped.addAll(retired.regions));
      waiting.clear();
      regions = 0;
    }
    dropped.forEach(Region::release);
  }

  /** Bytes of a tier that wait for readers. */
  public synchronized long waitingBytes(final Tier tier) {
    return waiting.stream()
        .flatMap(retired -> retired.regions.stream())
        .filter(region -> region.tier() == tier)
        .mapToLong(Region::bytes)
        .sum();
  }

  /** Regions that wait for readers. */
  public synchronized int waitingRegions() {
    return regions;
  }

  private record Retired(List<Region> regions, LeaseBarrier.Snapshot snapshot) {}
}
