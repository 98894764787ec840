package io.zerohop.shuffle.fetch;

import io.zerohop.device.Device;
import io.zerohop.shuffle.NodeConfig;
import io.zerohop.shuffle.transport.PathChooser;

/**
 * What all fetchers of a node share. Thread safe.
 *
 * @param device holds catalogs and signals: shared host memory
 * @param blockDevice holds the blocks
 */
public record FetchContext(
    NodeConfig config,
    Device device,
    Device blockDevice,
    PathChooser paths,
    LandingBudget landing,
    FetchCounters counters) {}
