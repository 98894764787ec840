package io.zerohop.shuffle.transport.remote;

import io.zerohop.device.posix.Clock;
import io.zerohop.shuffle.transport.ContactListener;
import io.zerohop.shuffle.transport.remote.carrier.CarrierStarter;
import java.time.Duration;

/**
 * Settings of path {@code sent}. Immutable.
 *
 * @param executorId this executor, for messages
 * @param starter starts what carries them, which the node owns; null if nothing does
 * @param bufferBytes most bytes of receive buffers that are kept for the next request, and most
 *     that are being sent to readers at a time
 * @param connectLimit longest time to connect to an owner
 * @param requestLimit longest time to wait for one answer of an owner
 * @param deviceLimit longest time for copies on the GPU
 * @param idleLimit how long an owner that is not read stays connected
 * @param contacts hears of each owner that is connected to
 * @param clock by which the limits are measured
 */
public record SendSettings(
    String executorId,
    CarrierStarter starter,
    long bufferBytes,
    Duration connectLimit,
    Duration requestLimit,
    Duration deviceLimit,
    Duration idleLimit,
    ContactListener contacts,
    Clock clock) {}
