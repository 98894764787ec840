package io.zerohop.shuffle.fetch;

import io.zerohop.shuffle.catalog.Warmth;
import io.zerohop.shuffle.fetch.route.PathChooser;
import io.zerohop.shuffle.pool.Devices;
import io.zerohop.shuffle.transport.ucx.UcxNode;

/**
 * What all fetchers of a node share. Thread safe.
 *
 * @param ucx the path between nodes; null if there is none
 */
public record FetchContext(
    FetchSettings settings,
    Devices devices,
    PathChooser paths,
    LandingBudget landing,
    FetchCounters counters,
    Warmth warmth,
    UcxNode ucx) {}
