package io.zerohop.shuffle.fetch;

import io.zerohop.shuffle.NodeConfig;
import io.zerohop.shuffle.pool.Devices;
import io.zerohop.shuffle.spill.Warmth;
import io.zerohop.shuffle.transport.PathChooser;

/** What all fetchers of a node share. Thread safe. */
public record FetchContext(
    NodeConfig config,
    Devices devices,
    PathChooser paths,
    LandingBudget landing,
    FetchCounters counters,
    Warmth warmth) {}
