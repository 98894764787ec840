package io.zerohop.shuffle.fetch;

import io.zerohop.device.Device;
import io.zerohop.shuffle.NodeConfig;
import io.zerohop.shuffle.transport.PathChooser;

/** What all fetchers of a node share. Thread safe. */
public record FetchContext(
    NodeConfig config,
    Device device,
    PathChooser paths,
    LandingBudget landing,
    FetchCounters counters) {}
