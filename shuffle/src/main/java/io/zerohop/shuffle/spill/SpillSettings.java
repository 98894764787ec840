package io.zerohop.shuffle.spill;

import io.zerohop.device.posix.Clock;
import java.time.Duration;

/**
 * The thresholds and the target of spilling. Immutable.
 *
 * @param start which part of a pool is used when they begin to, from 0 to 1; 1 means that they stay
 * @param idle how long a shuffle has to be unused before
 * @param cold where those go that leave host memory; null if they stay there
 * @param deviceLimit longest time for copies on the GPU
 * @param clock by which a shuffle is unused
 */
public record SpillSettings(
    double start, Duration idle, ColdStorage cold, Duration deviceLimit, Clock clock) {}
