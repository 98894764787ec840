package io.zerohop.shuffle.fetch;

import io.zerohop.device.posix.Clock;
import java.time.Duration;

/**
 * The limits of a node's fetchers. Immutable.
 *
 * @param checksum whether the bytes of blocks are verified
 * @param connectLimit longest time to connect to a peer
 * @param requestLimit longest time until a map output is ready
 * @param stagedLimit longest time in which none of a reader's staged blocks arrives: long, since
 *     the staged transport has limits and retries of its own; this one only ends what would hang
 *     for ever
 * @param deviceLimit longest time for copies on the GPU
 * @param windowBlocks most blocks of one window
 * @param windowBytes most bytes that one fetcher's staged blocks occupy at a time
 * @param deviceWindowBytes most bytes of one window of a fetcher for the GPU; a window's blocks
 *     have one owner
 * @param clock by which the limits are measured
 */
public record FetchSettings(
    boolean checksum,
    Duration connectLimit,
    Duration requestLimit,
    Duration stagedLimit,
    Duration deviceLimit,
    int windowBlocks,
    long windowBytes,
    long deviceWindowBytes,
    Clock clock) {}
