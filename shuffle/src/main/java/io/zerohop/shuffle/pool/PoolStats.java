package io.zerohop.shuffle.pool;

/**
 * The contents of one pool at one moment.
 *
 * @param limitBytes most bytes that it may reserve
 * @param reservedBytes bytes of its segments
 * @param usedBytes bytes of its regions, retired ones included
 * @param peakBytes most bytes of regions that it ever held
 * @param emptyBytes bytes of segments that hold nothing
 * @param returnedBytes bytes of segments that were closed, since the start
 * @param segments how many segments it has
 * @param regions how many regions are out
 */
public record PoolStats(
    long limitBytes,
    long reservedBytes,
    long usedBytes,
    long peakBytes,
    long emptyBytes,
    long returnedBytes,
    int segments,
    int regions) {}
