package io.zerohop.shuffle.pool;

/**
 * The contents of one pool at one moment.
 *
 * @param limitBytes most bytes that it may reserve
 * @param reservedBytes bytes of its segments, and of those that it lends
 * @param usedBytes bytes of its regions, retired ones included, in borrowed segments too
 * @param peakBytes most bytes of regions that it ever held
 * @param emptyBytes bytes of own segments that hold nothing
 * @param returnedBytes bytes of own and lent segments that were closed, since the start
 * @param segments how many segments it has, borrowed ones included
 * @param regions how many regions are out
 * @param loans memory that it lends and borrows
 */
public record PoolStats(
    long limitBytes,
    long reservedBytes,
    long usedBytes,
    long peakBytes,
    long emptyBytes,
    long returnedBytes,
    int segments,
    int regions,
    Loans loans) {

  /** Bytes of regions in its own segments, which are within its limit. */
  public long ownUsedBytes() {
    return usedBytes - loans.borrowedUsedBytes();
  }

  /**
   * GPU memory that executors of a node lend to each other.
   *
   * @param borrowedBytes bytes of the segments that the pool has borrowed
   * @param borrowedUsedBytes bytes of regions in them
   * @param borrowedFreeBytes bytes of them for more regions
   * @param borrowedPeakBytes most bytes that it had borrowed at a time
   * @param borrowedWrittenBytes bytes of all regions in borrowed segments since the start
   * @param lentBytes bytes of the segments that it lends
   * @param recalledSegments lent segments that it wanted back, since the start
   */
  public record Loans(
      long borrowedBytes,
      long borrowedUsedBytes,
      long borrowedFreeBytes,
      long borrowedPeakBytes,
      long borrowedWrittenBytes,
      long lentBytes,
      long recalledSegments) {}
}
