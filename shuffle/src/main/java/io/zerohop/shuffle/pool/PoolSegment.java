package io.zerohop.shuffle.pool;

/** A segment of the pool with its free ranges. Guarded by the pool's lock. */
final class PoolSegment {
  private final SegmentMemory memory;
  private final FreeMap free;
  private final boolean dedicated;
  private long emptySince;

  PoolSegment(final SegmentMemory memory, final boolean dedicated) {
    this.memory = memory;
    this.free = new FreeMap(memory.bytes() & -FreeMap.ALIGNMENT);
    this.dedicated = dedicated;
  }

  SegmentMemory memory() {
    return memory;
  }

  FreeMap free() {
    return free;
  }

  /** Returns whether it was made for one large region and goes away with it. */
  boolean dedicated() {
    return dedicated;
  }

  /** Returns the time at which it last became empty, in nanoseconds of the monotonic clock. */
  long emptySince() {
    return emptySince;
  }

  void becameEmpty(final long now) {
    emptySince = now;
  }
}
