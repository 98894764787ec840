package io.zerohop.shuffle.transport.ucx.engine;

import io.zerohop.device.posix.Clock;
import io.zerohop.shuffle.transport.ContactListener;
import io.zerohop.shuffle.transport.ControlChannel;
import io.zerohop.shuffle.transport.ControlService;
import java.time.Duration;
import java.util.function.Function;

/**
 * Settings of path {@code ucx}. Immutable.
 *
 * @param executorId this executor, for messages
 * @param emulatedGets whether gets are taken that the owner's UCX emulates, which tests want; else
 *     UCX is used only where they can come to be one-sided
 * @param starter starts UCX; the node owns what comes of it
 * @param channels makes the channel by which executors of other nodes ask this one, given what
 *     answers; the node owns it. Null if blocks of other nodes are staged
 * @param receiveBufferBytes most bytes that arriving blocks occupy at a time
 * @param connectLimit longest time to connect to a peer
 * @param requestLimit longest time to wait for one answer of a peer
 * @param deviceLimit longest time for copies on the GPU
 * @param idleLimit how long an owner that is not read stays connected
 * @param contacts hears of each owner that is connected to
 * @param clock by which the limits are measured
 */
public record UcxSettings(
    String executorId,
    boolean emulatedGets,
    UcxStarter starter,
    Function<ControlService, ControlChannel> channels,
    long receiveBufferBytes,
    Duration connectLimit,
    Duration requestLimit,
    Duration deviceLimit,
    Duration idleLimit,
    ContactListener contacts,
    Clock clock) {}
