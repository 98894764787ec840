package io.zerohop.shuffle.pool;

import org.jspecify.annotations.Nullable;

/** A segment of the pool, own or borrowed, with its free ranges. Guarded by the pool's lock. */
final class PoolSegment {
  private final SegmentMemory memory;
  private final FreeMap free;
  private final boolean dedicated;
  private final @Nullable Loan loan;
  private long emptySince;

  /** Read by the spiller without the lock. */
  private volatile boolean recalled;

  /**
   * @param loan the lender's side, if it is borrowed
   */
  PoolSegment(final SegmentMemory memory, final boolean dedicated, final @Nullable Loan loan) {
    this.memory = memory;
    this.loan = loan;
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

  /** Returns by whom it is lent, if it is borrowed. */
  @Nullable Loan loan() {
    return loan;
  }

  /** Returns whether its lender wants it back: nothing is put there any more. */
  boolean recalled() {
    return recalled;
  }

  void recall() {
    recalled = true;
  }

  void becameEmpty(final long now) {
    emptySince = now;
  }
}
