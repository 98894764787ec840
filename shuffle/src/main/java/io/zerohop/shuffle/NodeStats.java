package io.zerohop.shuffle;

import io.zerohop.shuffle.block.Path;
import io.zerohop.shuffle.fetch.MovedBlocks;
import io.zerohop.shuffle.pool.PoolStats;
import io.zerohop.shuffle.spill.SpilledOutputs;
import java.util.function.ToLongFunction;

/**
 * What a {@link ShuffleNode} holds at one moment; a leak shows here.
 *
 * @param host the pool in host memory
 * @param device the pool in GPU memory; null if there is none
 * @param deflectedBytes bytes that found no room in GPU memory and went to host memory, since the
 *     start
 * @param shrunkBytes bytes of GPU memory that were given back since others had run out of it, since
 *     the start
 * @param toHost what was moved from GPU memory to host memory
 * @param toFiles what was moved from host memory to files
 * @param retiredRegions regions that only wait for readers
 * @param mapOutputs map outputs that can be read
 * @param openWriters map outputs that are being written
 * @param openLeases leases that readers in this process hold, on own and on peers' memory, and that
 *     readers on other nodes hold on its own
 * @param connectedPeers peers that may read this node's memory now
 * @param peers peers whose memory this node may read now
 * @param mappedPeerSegments peers' segments that are mapped now, their root segments included
 * @param strangers connections, since the start, that were refused or ended before they had proved
 *     to belong to this application
 * @param landingBytes bytes reserved for staged blocks now
 * @param landingSlabs pieces of memory that bytes from other nodes land in or leave from now
 * @param landingWaitNanos time that readers waited for such memory, since the start
 * @param asyncCommits map outputs, since the start, that were published before their copies had
 *     ended
 * @param pendingCommits those of them whose copies are under way now
 * @param unreadyOutputs map outputs, since the start, that readers here found before their bytes
 *     were there
 * @param local blocks handed out in place from own memory
 * @param peer blocks handed out in place from peers' memory
 * @param ucx blocks handed out that came from other nodes' memory
 * @param staged blocks handed out that were staged
 */
public record NodeStats(
    PoolStats host,
    PoolStats device,
    long deflectedBytes,
    long shrunkBytes,
    SpilledOutputs toHost,
    SpilledOutputs toFiles,
    int retiredRegions,
    int mapOutputs,
    int openWriters,
    int openLeases,
    int connectedPeers,
    int peers,
    int mappedPeerSegments,
    long strangers,
    long landingBytes,
    int landingSlabs,
    long landingWaitNanos,
    long asyncCommits,
    int pendingCommits,
    long unreadyOutputs,
    MovedBlocks local,
    MovedBlocks peer,
    MovedBlocks ucx,
    MovedBlocks staged) {

  /** Most bytes that all pools may reserve. */
  public long poolLimitBytes() {
    return sum(PoolStats::limitBytes);
  }

  /** Bytes of the segments of all pools. */
  public long poolReservedBytes() {
    return sum(PoolStats::reservedBytes);
  }

  /** Bytes of the regions of all pools, retired ones included. */
  public long poolUsedBytes() {
    return sum(PoolStats::usedBytes);
  }

  /** Segments of all pools. */
  public int segments() {
    return (int) sum(PoolStats::segments);
  }

  /** Regions of all pools, retired ones included. */
  public int regions() {
    return (int) sum(PoolStats::regions);
  }

  private long sum(final ToLongFunction<PoolStats> figure) {
    return figure.applyAsLong(host) + (device == null ? 0 : figure.applyAsLong(device));
  }

  /** What went one way. */
  public MovedBlocks moved(final Path path) {
    return switch (path) {
      case LOCAL -> local;
      case PEER -> peer;
      case UCX -> ucx;
      case STAGED -> staged;
    };
  }
}
