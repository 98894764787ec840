package io.zerohop.shuffle.pool;

import com.google.errorprone.annotations.concurrent.GuardedBy;
import io.zerohop.device.posix.Clock;
import java.time.Duration;
import org.jspecify.annotations.Nullable;

/**
 * The segments that other executors lend to a pool, as the pool counts them. Decides when more are
 * borrowed: ahead of the need, since no allocation waits for a peer. Thread safe; shares the pool's
 * lock.
 */
public final class BorrowedSegments {
  /** Borrows ahead while less is free; parts of the pool's limit. */
  private static final int AHEAD = 4;

  /** Pause after nothing was borrowed although it is wanted. */
  private static final Duration PAUSE = Duration.ofMillis(50);

  private final Pool pool;
  private final Object lock;
  private final Clock clock;
  private final long segmentBytes;
  private final long ahead;

  @GuardedBy("lock")
  private long bytes;

  @GuardedBy("lock")
  private long used;

  /** Free bytes of segments that are not recalled. */
  @GuardedBy("lock")
  private long free;

  @GuardedBy("lock")
  private long peak;

  @GuardedBy("lock")
  private long written;

  /** The largest region that found no room since a segment was borrowed last. */
  @GuardedBy("lock")
  private long refused;

  @GuardedBy("lock")
  private long pausedUntil;

  @GuardedBy("lock")
  private boolean paused;

  /** Whether the borrower was asked, and has not said yet that it has no more to do. */
  @GuardedBy("lock")
  private boolean asked;

  /** Whether the borrower is to be asked, by the thread that finds this. */
  private volatile boolean isShort;

  /** Has a segment borrowed; absent if this executor borrows none. */
  private volatile @Nullable Runnable borrower;

  /**
   * @param pool that borrows, and may lend; called with its lock held
   * @param lock of the pool
   * @param limit of the pool
   * @param segmentBytes the least size of a segment that is borrowed
   */
  BorrowedSegments(
      final Pool pool,
      final Object lock,
      final Clock clock,
      final long limit,
      final long segmentBytes) {
    this.pool = pool;
    this.lock = lock;
    this.clock = clock;
    this.segmentBytes = segmentBytes;
    this.ahead = Math.max(limit / AHEAD, Math.min(segmentBytes, limit / 2));
  }

  /**
   * Sets the action that has segments borrowed when the pool is nearly full. It is called without
   * the pool's lock and does not wait; the borrower then asks for {@link #wanted}.
   */
  public void onNearlyFull(final Runnable action) {
    borrower = action;
  }

  /**
   * Returns the size of the segment that is to be borrowed now, or 0 if none is. Called by the
   * borrower, which goes on until it is 0 or nobody lends.
   */
  public long wanted() {
    synchronized (lock) {
      if (!asked) {
        return 0;
      }
      final boolean wantsMore = refused > 0 || isNearlyFull();
      if (wantsMore && pool.isOpen() && !pool.lent().canRecall()) {
        return Math.max(segmentBytes, refused);
      }
      if (pool.lent().isWanted(pool.ownFree())) {
        pool.lent().recallFor(segmentBytes); // Own memory is nearer than another's.
      }
      asked = false;
      if (wantsMore) {
        nobodyLends();
      }
      return 0;
    }
  }

  /** Nobody lends what is wanted: the borrower is not asked again for a moment. */
  public void nobodyLends() {
    synchronized (lock) {
      asked = false;
      refused = 0;
      paused = true;
      pausedUntil = clock.in(PAUSE);
    }
  }

  @GuardedBy("lock")
  private boolean isNearlyFull() {
    return pool.ownFree() + free < ahead;
  }

  /** An allocation found no room. Does not wait; called without the lock. */
  void refused(final long wanted) {
    if (borrower != null) {
      synchronized (lock) {
        refused = Math.max(refused, wanted);
      }
      isShort = true;
      askIfShort();
    }
  }

  /** Has the borrower asked if an allocation found that too little is left; without the lock. */
  void askIfShort() {
    final Runnable action = borrower;
    if (!isShort || action == null) {
      return;
    }
    synchronized (lock) {
      isShort = false;
      paused = paused && !clock.isOver(pausedUntil);
      if (asked || paused) {
        return;
      }
      asked = true;
    }
    action.run();
  }

  /** A region was taken, in own memory or not. */
  void took(final PoolSegment segment, final long region) {
    synchronized (lock) {
      if (segment.loan() != null) {
        used += region;
        written += region;
        free -= region;
      }
      if (borrower != null && isNearlyFull()) {
        isShort = true;
      }
    }
  }

  /** A region of a borrowed segment was freed. */
  void freed(final PoolSegment segment, final long region) {
    synchronized (lock) {
      used -= region;
      free += segment.recalled() ? 0 : region;
    }
  }

  /** A segment came. */
  void added(final PoolSegment segment) {
    synchronized (lock) {
      bytes += segment.memory().segment().bytes();
      peak = Math.max(peak, bytes);
      free += segment.free().freeBytes();
      refused = refused > segment.free().freeBytes() ? refused : 0;
    }
  }

  /** The lender wants a segment back. */
  void recalled(final PoolSegment segment) {
    synchronized (lock) {
      free -= segment.free().freeBytes();
      segment.recall();
    }
  }

  /** A segment is closed here. */
  void removed(final PoolSegment segment) {
    synchronized (lock) {
      bytes -= segment.memory().segment().bytes();
      free -= segment.recalled() ? 0 : segment.free().freeBytes();
    }
  }

  /** Bytes of regions. */
  long used() {
    synchronized (lock) {
      return used;
    }
  }

  /** Returns whether there are any. */
  boolean isEmpty() {
    synchronized (lock) {
      return bytes == 0;
    }
  }

  /** Returns what is lent and borrowed. */
  PoolStats.Loans stats() {
    synchronized (lock) {
      return new PoolStats.Loans(
          bytes, used, free, peak, written, pool.lent().bytes(), pool.lent().recalls());
    }
  }

  /** A segment that a peer lends, as its borrower's pool sees it. */
  @FunctionalInterface
  public interface Loan {

    /**
     * The segment is closed here and goes back. Called once, under the pool's lock; does not wait.
     */
    void giveBack();
  }
}
