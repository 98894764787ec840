package io.zerohop.shuffle;

import io.zerohop.shuffle.pool.Pool;
import io.zerohop.shuffle.transport.SharedTransfers;

/**
 * The resources that a node must not hold when nobody uses it.
 *
 * @param outputs map outputs that can be read
 * @param writers map outputs that are being written
 * @param regions of all pools, retired ones included
 * @param retiredRegions regions that only wait for readers
 * @param readingPeers peers that may read this node's memory
 * @param mappedSegments peers' segments that are mapped, their root segments included
 * @param transfers blocks of other nodes that were asked for and have not ended, wanted or not
 */
record Holdings(
    int outputs,
    int writers,
    int regions,
    int retiredRegions,
    int readingPeers,
    int mappedSegments,
    int transfers) {

  static Holdings of(final ShuffleNode node) {
    final NodeParts parts = node.parts;
    final Pool gpu = parts.memory.tiers().device();
    return new Holdings(
        parts.memory.index().outputs(),
        parts.outputs.open().size(),
        parts.memory.tiers().host().stats().regions() + (gpu == null ? 0 : gpu.stats().regions()),
        parts.memory.reclaimer().waitingRegions(),
        parts.memory.root().lanes().connected(),
        parts.peers.mappings(),
        parts.shared.stream().mapToInt(SharedTransfers::open).sum());
  }
}
