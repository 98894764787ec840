package io.zerohop.shuffle.pool;

import io.zerohop.shuffle.pool.BorrowedSegments.Loan;
import java.util.Map;
import java.util.TreeMap;
import java.util.TreeSet;
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

  /**
   * The free ranges of one segment: best fit, neighbours joined when freed. Not thread safe.
   *
   * <p>Two views of the same ranges are kept: by offset, to join neighbours, and by size, to find
   * the smallest that fits. All offsets and lengths are multiples of {@link #ALIGNMENT}.
   */
  static final class FreeMap {
    /** Regions begin at, and are rounded up to, multiples of this many bytes. */
    static final int ALIGNMENT = 256;

    private final long capacity;
    private final TreeMap<Long, Long> lengthByOffset = new TreeMap<>();
    private final TreeSet<Range> bySize = new TreeSet<>();
    private long freeBytes;

    /** A map in which everything is free. */
    FreeMap(final long capacity) {
      if (capacity % ALIGNMENT != 0) {
        throw new IllegalArgumentException("capacity " + capacity + " is not a multiple of 256");
      }
      this.capacity = capacity;
      add(0, capacity);
    }

    /** Rounds a size up to the alignment. */
    static long align(final long bytes) {
      return (bytes + ALIGNMENT - 1) & -ALIGNMENT;
    }

    /** Takes a range; returns its offset, or -1 if no free range is that long. */
    long allocate(final long length) {
      final Range best = bySize.ceiling(new Range(length, 0));
      if (best == null) {
        return -1;
      }
      remove(best.offset, best.length);
      if (best.length > length) {
        add(best.offset + length, best.length - length);
      }
      return best.offset;
    }

    /**
     * Gives a range back.
     *
     * @throws IllegalStateException if part of it is free already
     */
    void free(final long offset, final long length) {
      long start = offset;
      long end = offset + length;
      final Map.Entry<Long, Long> before = lengthByOffset.floorEntry(offset);
      final Map.Entry<Long, Long> after = lengthByOffset.ceilingEntry(offset);
      if (offset < 0
          || end > capacity
          || (before != null && before.getKey() + before.getValue() > offset)
          || (after != null && after.getKey() < end)) {
        throw new IllegalStateException("range " + offset + "+" + length + " was freed twice");
      }
      if (before != null && before.getKey() + before.getValue() == offset) {
        start = before.getKey();
        remove(before.getKey(), before.getValue());
      }
      if (after != null && after.getKey() == end) {
        end += after.getValue();
        remove(after.getKey(), after.getValue());
      }
      add(start, end - start);
    }

    /** Returns whether nothing is taken. */
    boolean isEmpty() {
      return freeBytes == capacity;
    }

    /** Bytes that are free, in however many ranges. */
    long freeBytes() {
      return freeBytes;
    }

    /** Longest range that can be taken. */
    long largestFree() {
      return bySize.isEmpty() ? 0 : bySize.last().length;
    }

    private void add(final long offset, final long length) {
      lengthByOffset.put(offset, length);
      bySize.add(new Range(length, offset));
      freeBytes += length;
    }

    private void remove(final long offset, final long length) {
      lengthByOffset.remove(offset);
      bySize.remove(new Range(length, offset));
      freeBytes -= length;
    }

    private record Range(long length, long offset) implements Comparable<Range> {
      @Override
      public int compareTo(final Range other) {
        final int byLength = Long.compare(length, other.length);
        return byLength != 0 ? byLength : Long.compare(offset, other.offset);
      }
    }
  }
}
