package io.zerohop.spark.proof;

/**
 * How much a proof does. Immutable.
 *
 * @param bytes of the segments, and of the largest get
 * @param kills owners that are killed, of each memory and in each direction
 * @param rateMillis for which gets of one size are timed, three at least
 */
record Extent(long bytes, int kills, long rateMillis) {}
