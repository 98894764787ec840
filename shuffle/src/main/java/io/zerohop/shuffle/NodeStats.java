package io.zerohop.shuffle;

/**
 * What a {@link ShuffleNode} holds at one moment; a leak shows here.
 *
 * @param poolLimitBytes most bytes that the pool may reserve
 * @param poolReservedBytes bytes of its segments
 * @param poolUsedBytes bytes of its regions, retired ones included
 * @param segments segments of the pool
 * @param regions regions of the pool, retired ones included
 * @param retiredRegions regions that only wait for readers
 * @param mapOutputs map outputs that can be read
 * @param openWriters map outputs that are being written
 * @param openLeases leases that readers in this process hold, on own and on peers' memory
 * @param connectedPeers peers that may read this node's memory now
 * @param peers peers whose memory this node may read now
 * @param mappedPeerSegments peers' segments that are mapped now, their root segments included
 * @param landingBytes bytes reserved for staged blocks now
 * @param local blocks handed out in place from own memory
 * @param peer blocks handed out in place from peers' memory
 * @param staged blocks handed out that were staged
 */
public record NodeStats(
    long poolLimitBytes,
    long poolReservedBytes,
    long poolUsedBytes,
    int segments,
    int regions,
    int retiredRegions,
    int mapOutputs,
    int openWriters,
    int openLeases,
    int connectedPeers,
    int peers,
    int mappedPeerSegments,
    long landingBytes,
    Moved local,
    Moved peer,
    Moved staged) {

  /** Blocks and bytes since the node's start. */
  public record Moved(long blocks, long bytes) {}

  /** What went one way. */
  public Moved moved(final Path path) {
    return switch (path) {
      case LOCAL -> local;
      case PEER -> peer;
      case STAGED -> staged;
    };
  }
}
