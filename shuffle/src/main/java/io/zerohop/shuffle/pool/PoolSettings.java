package io.zerohop.shuffle.pool;

import io.zerohop.device.posix.Clock;
import java.time.Duration;

/**
 * The size of a pool and of its segments.
 *
 * @param limitBytes most bytes of all its segments together
 * @param segmentBytes size of an ordinary segment; larger regions get a segment of their own
 * @param keepEmpty how long an empty segment stays: fresh pages are slow, a free pool is polite
 * @param clock by which they stay
 */
public record PoolSettings(long limitBytes, long segmentBytes, Duration keepEmpty, Clock clock) {}
