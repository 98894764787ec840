package io.zerohop.shuffle.transport;

import io.zerohop.device.posix.Clock;

/**
 * This executor, as its transports know it. Immutable.
 *
 * @param executorId for messages
 * @param incarnation which life of it answers
 * @param contacts hears of each owner that is connected to
 * @param clock by which its limits are measured
 */
public record Self(String executorId, long incarnation, ContactListener contacts, Clock clock) {}
