package io.zerohop.shuffle.pool;

import java.util.concurrent.atomic.AtomicInteger;

/**
 * A range of the pool. Reference counted: made with one reference, returned to the pool when the
 * last one is released. Thread safe; the bytes are the holder's to order.
 */
public final class Region {
  private final Pool pool;
  private final PoolSegment segment;
  private final long offset;
  private final long bytes;
  private final AtomicInteger references = new AtomicInteger(1);

  Region(final Pool pool, final PoolSegment segment, final long offset, final long bytes) {
    this.pool = pool;
    this.segment = segment;
    this.offset = offset;
    this.bytes = bytes;
  }

  /** The segment it lies in. */
  public SegmentMemory memory() {
    return segment.memory();
  }

  /** The kind of memory it is. */
  public Tier tier() {
    return pool.tier();
  }

  /** Returns whether it lies in GPU memory of the own pool. */
  public boolean isOnOwnGpu() {
    return tier() == Tier.DEVICE && segment.loan() == null;
  }

  /** Returns whether a peer lends the memory that it lies in. */
  public boolean isBorrowed() {
    return segment.loan() != null;
  }

  /** Returns whether the peer wants that memory back. */
  public boolean isRecalled() {
    return segment.recalled();
  }

  /** Offset in the segment. */
  public int offset() {
    return (int) offset;
  }

  /** Address of its first byte. */
  public long address() {
    return segment.memory().address() + offset;
  }

  /** Size in bytes, as rounded up by the pool. */
  public long bytes() {
    return bytes;
  }

  /**
   * Takes one more reference.
   *
   * @return false if the region was already returned
   */
  public boolean retain() {
    for (; ; ) {
      final int count = references.get();
      if (count == 0) {
        return false;
      }
      if (references.compareAndSet(count, count + 1)) {
        return true;
      }
    }
  }

  /** Drops a reference; the last one returns the memory to the pool. */
  public void release() {
    final int count = references.decrementAndGet();
    if (count == 0) {
      pool.free(this);
    } else if (count < 0) {
      throw new IllegalStateException(
          "region " + offset + "+" + bytes + " of segment " + memory().id() + " released twice");
    }
  }

  PoolSegment segment() {
    return segment;
  }
}
