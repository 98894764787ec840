package io.zerohop.shuffle;

import io.zerohop.shuffle.pool.Pool;
import io.zerohop.shuffle.pool.PoolStats;
import io.zerohop.shuffle.pool.Tiers;
import io.zerohop.shuffle.spill.Evictor.SpilledOutputs;
import io.zerohop.shuffle.transport.SharedTransfers;
import io.zerohop.shuffle.transport.remote.RemoteNode;
import io.zerohop.shuffle.transport.remote.SendingNode;
import java.util.function.ToLongFunction;
import org.jspecify.annotations.Nullable;

/**
 * The resources that a {@link ShuffleNode} holds at one moment.
 *
 * @param host the pool in host memory
 * @param device the pool in GPU memory, if there is one
 * @param evictions what did not go to a pool, or left one
 * @param outputs own map outputs
 * @param leases who is reading, and what waits for it
 * @param peers executors of the same node, and connections
 * @param receiveBuffers memory for blocks that are moved here
 */
public record NodeStats(
    PoolStats host,
    @Nullable PoolStats device,
    Evictions evictions,
    Outputs outputs,
    Leases leases,
    Peers peers,
    ReceiveBuffers receiveBuffers) {

  /** What a node holds now. */
  static NodeStats of(final NodeParts parts) {
    final SendingNode sending = parts.sending;
    final Tiers tiers = parts.memory.tiers();
    final Pool gpu = tiers.device();
    return new NodeStats(
        tiers.host().stats(),
        gpu == null ? null : gpu.stats(),
        new Evictions(
            tiers.overflow().overflowedBytes(),
            parts.evictor.givenBytes(),
            parts.evictor.movedToHost(),
            parts.evictor.movedToFiles()),
        new Outputs(parts.outputs.begunCommits(), parts.outputs.pendingCommits()),
        new Leases(
            parts.memory.lanes().openLeases()
                + parts.peers.openLeases()
                + parts.outputs.leases().size()
                + (int) parts.sum(RemoteNode::leases),
            parts.fetches.unready()),
        new Peers(
            parts.peers.connected(),
            (int) parts.sum(RemoteNode::connected),
            (int) parts.sum(RemoteNode::readers),
            parts.server.refused() + parts.sum(RemoteNode::strangers)),
        new ReceiveBuffers(
            parts.fetches.reserved(),
            (int) parts.sum(RemoteNode::slabsTaken),
            sending == null ? 0 : sending.sendingBytes(),
            sending == null ? 0 : sending.savedBytes(),
            parts.shared.stream().mapToLong(SharedTransfers::joined).sum(),
            parts.fetches.waitedForBuffersNanos()));
  }

  /**
   * Bytes that did not go to a pool, or left one, since the start.
   *
   * @param overflowedBytes bytes that found no room in GPU memory and went to host memory
   * @param shrunkBytes bytes of GPU memory that were given back since others had run out of it
   * @param toHost what was moved from GPU memory to host memory
   * @param toFiles what was moved from host memory to files
   */
  public record Evictions(
      long overflowedBytes, long shrunkBytes, SpilledOutputs toHost, SpilledOutputs toFiles) {}

  /**
   * Own map outputs.
   *
   * @param asyncCommits those, since the start, that were published before their copies had ended
   * @param pendingCommits those of them whose copies are under way now
   */
  public record Outputs(long asyncCommits, int pendingCommits) {}

  /**
   * Current readers.
   *
   * @param open leases that readers in this process hold, on own and on peers' memory, and that
   *     readers on other nodes hold on its own
   * @param unreadyOutputs map outputs, since the start, that readers here found before their bytes
   *     were there
   */
  public record Leases(int open, long unreadyOutputs) {}

  /**
   * Other executors, and connections.
   *
   * @param readable peers whose memory this node may read now
   * @param owners executors of other nodes that are connected, to be read by UCX or to send
   * @param readers executors of other nodes that are connected, and read this one
   * @param strangers connections, since the start, that were refused or ended before they had
   *     proved to belong to this application
   */
  public record Peers(int readable, int owners, int readers, long strangers) {}

  /**
   * Memory for blocks that are moved here.
   *
   * @param bytes bytes reserved for staged blocks now
   * @param slabs pieces of memory that bytes from other nodes are received in, or sent from, now
   * @param sendingBytes bytes that are being sent to executors of other nodes now, over Spark's
   *     connections
   * @param savedBytes bytes that compression has kept from the network, since the start
   * @param sharedBlocks blocks of other nodes that a reader got from another one's transfer, since
   *     the start
   * @param waitNanos time in nanoseconds that readers waited for such memory, since the start
   */
  public record ReceiveBuffers(
      long bytes,
      int slabs,
      long sendingBytes,
      long savedBytes,
      long sharedBlocks,
      long waitNanos) {}

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

  private long sum(final ToLongFunction<PoolStats> figure) {
    return figure.applyAsLong(host) + (device == null ? 0 : figure.applyAsLong(device));
  }
}
