package io.zerohop.spark.metrics;

import com.codahale.metrics.Counter;
import com.codahale.metrics.ExponentiallyDecayingReservoir;
import com.codahale.metrics.Gauge;
import com.codahale.metrics.Histogram;
import com.codahale.metrics.MetricRegistry;
import io.zerohop.shuffle.NodeStats;
import io.zerohop.shuffle.ShuffleNode;
import io.zerohop.shuffle.block.BlockPath;
import io.zerohop.shuffle.block.Link;
import io.zerohop.shuffle.fetch.Fetches;
import io.zerohop.shuffle.keeper.KeeperStats;
import io.zerohop.shuffle.pool.PoolStats;
import io.zerohop.shuffle.spill.Evictor.SpilledOutputs;
import io.zerohop.shuffle.transport.SharedTransfers;
import io.zerohop.spark.outputfiles.MapOutputFiles;
import java.util.function.Function;
import java.util.function.LongSupplier;
import java.util.function.Supplier;
import java.util.function.ToLongFunction;
import org.apache.spark.metrics.source.Source;

/**
 * The source {@code zerohop} of Spark's metrics system: bytes and blocks by path, waiting time, and
 * the state of pools and files, as {@link Metric} lists them. Thread safe.
 */
public final class ExecutorMetrics implements Source {
  private final MetricRegistry registry = new MetricRegistry();

  public ExecutorMetrics(final Fetches fetched) {
    for (final BlockPath path : BlockPath.values()) {
      count(Metric.bytes(path), () -> fetched.moved(path).bytes());
      count(Metric.blocks(path), () -> fetched.moved(path).blocks());
    }
    count(Metric.PEER_GPU_BYTES, () -> fetched.bytes(Link.PEER_GPU));
    count(Metric.PEER_NVLINK_BYTES, () -> fetched.bytes(Link.PEER_NVLINK));
    count(Metric.PEER_PCIE_BYTES, () -> fetched.bytes(Link.PEER_PCIE));
    count(Metric.PEER_HOST_BYTES, () -> fetched.bytes(Link.PEER_HOST));
    count(Metric.FETCH_WAIT, fetched::waitedNanos);
    // Shown as single values: the rules for Prometheus have no attributes of histograms.
    final Histogram waits = new Histogram(new ExponentiallyDecayingReservoir());
    fetched.onWait(waits::update);
    count(Metric.FETCH_WAITS, waits::getCount);
    gauge(Metric.FETCH_WAIT_MEDIAN, () -> (long) waits.getSnapshot().getMedian());
    gauge(Metric.FETCH_WAIT_P99, () -> (long) waits.getSnapshot().get99thPercentile());
  }

  /** A counter of Dropwizard's that shows what another one counts. */
  private void count(final Metric metric, final LongSupplier counted) {
    registry.register(
        metric.key(),
        new Counter() {
          @Override
          public long getCount() {
            return counted.getAsLong();
          }
        });
  }

  /** Adds the gauges of the executor's blocks in memory. */
  public void watch(final ShuffleNode node) {
    pool("HOST", node, NodeStats::host);
    spilled("FILES", node, stats -> stats.evictions().toFiles());
    gauge(Metric.RECEIVE_BUFFERS, node, stats -> stats.receiveBuffers().slabs());
    gauge(Metric.SENDING_BYTES, node, stats -> stats.receiveBuffers().sendingBytes());
    gauge(Metric.SAVED_BYTES, node, stats -> stats.receiveBuffers().savedBytes());
    gauge(Metric.REMOTE_SHARED_BLOCKS, node, stats -> stats.receiveBuffers().sharedBlocks());
    gauge(Metric.RECEIVE_WAIT, node, stats -> stats.receiveBuffers().waitNanos());
    if (node.hasGpu()) {
      watchGpu(node);
    }
    gauge(Metric.POOL_LIMIT, node, NodeStats::poolLimitBytes);
    gauge(Metric.POOL_RESERVED, node, NodeStats::poolReservedBytes);
    gauge(Metric.POOL_USED, node, NodeStats::poolUsedBytes);
    gauge(Metric.POOL_SEGMENTS, node, NodeStats::segments);
    gauge(Metric.LEASES_OPEN, node, stats -> stats.leases().open());
    gauge(Metric.PEERS, node, stats -> stats.peers().readable());
    gauge(Metric.REMOTE_OWNERS, node, stats -> stats.peers().owners());
    gauge(Metric.REMOTE_READERS, node, stats -> stats.peers().readers());
    gauge(Metric.UNAUTHENTICATED, node, stats -> stats.peers().strangers());
    gauge(Metric.CONTROL_PORT, () -> (long) node.location().port());
  }

  private void watchGpu(final ShuffleNode node) {
    spilled("HOST", node, stats -> stats.evictions().toHost());
    pool("DEVICE", node, NodeStats::device);
    gauge(Metric.DEVICE_OVERFLOW, node, stats -> stats.evictions().overflowedBytes());
    loans(Metric.DEVICE_BORROWED, node, PoolStats.Loans::borrowedBytes);
    loans(Metric.DEVICE_BORROWED_PEAK, node, PoolStats.Loans::borrowedPeakBytes);
    loans(Metric.DEVICE_BORROWED_WRITTEN, node, PoolStats.Loans::borrowedWrittenBytes);
    loans(Metric.DEVICE_LENT, node, PoolStats.Loans::lentBytes);
    loans(Metric.DEVICE_RECALLED, node, PoolStats.Loans::recalledSegments);
    gauge(Metric.DEVICE_SHRUNK, node, stats -> stats.evictions().shrunkBytes());
    gauge(Metric.COMMITS_ASYNC, node, stats -> stats.outputs().asyncCommits());
    gauge(Metric.COMMITS_PENDING, node, stats -> stats.outputs().pendingCommits());
    gauge(Metric.FETCH_UNREADY, node, stats -> stats.leases().unreadyOutputs());
  }

  /**
   * Adds the gauges of this node's keeper.
   *
   * @param keeper what it said last
   */
  public void watchKeeper(final ShuffleNode node, final Supplier<KeeperStats> keeper) {
    gauge(Metric.KEEPER, () -> node.hasKeeper() ? 1L : 0L);
    gauge(Metric.KEEPER_HELD, () -> keeper.get().heldBytes());
    gauge(Metric.KEEPER_LEFT, () -> keeper.get().leftBytes());
    gauge(Metric.KEEPER_LEFT_OUTPUTS, () -> keeper.get().leftOutputs());
    gauge(Metric.KEEPER_ADOPTED, () -> keeper.get().adoptedOutputs());
    gauge(Metric.KEEPER_DROPPED, () -> keeper.get().droppedOutputs());
    gauge(Metric.KEEPER_REFUSED, () -> keeper.get().refusedSegments());
    gauge(Metric.KEEPER_SENT_BLOCKS, () -> keeper.get().sentBlocks());
    gauge(Metric.KEEPER_SENT, () -> keeper.get().sentBytes());
    gauge(Metric.KEEPER_FILES, () -> keeper.get().fileBytes());
    gauge(Metric.KEEPER_FILES_OUTPUTS, () -> keeper.get().fileOutputs());
  }

  public void watch(final MapOutputFiles files) {
    gauge(Metric.FILES_BYTES, files::bytes);
  }

  /** Adds the gauge of the blocks that readers did not have to ask for themselves. */
  public void watch(final SharedTransfers transfers) {
    gauge(Metric.SHARED_BLOCKS, transfers::joined);
  }

  /** Adds the gauges of a pool, whose metrics have names that begin with it. */
  private void pool(
      final String name, final ShuffleNode node, final Function<NodeStats, PoolStats> pool) {
    gauge(Metric.of(name, "LIMIT"), node, stats -> pool.apply(stats).limitBytes());
    gauge(Metric.of(name, "USED"), node, stats -> pool.apply(stats).ownUsedBytes());
    gauge(Metric.of(name, "PEAK"), node, stats -> pool.apply(stats).peakBytes());
  }

  private void loans(
      final Metric metric, final ShuffleNode node, final ToLongFunction<PoolStats.Loans> count) {
    gauge(
        metric,
        node,
        stats -> stats.device() == null ? 0 : count.applyAsLong(stats.device().loans()));
  }

  /** Adds the gauges of what moved to a place, whose metrics have names that begin with it. */
  private void spilled(
      final String to, final ShuffleNode node, final Function<NodeStats, SpilledOutputs> spilled) {
    gauge(Metric.of(to, "OUTPUTS"), node, stats -> spilled.apply(stats).outputs());
    gauge(Metric.of(to, "SPILLED"), node, stats -> spilled.apply(stats).bytes());
    gauge(Metric.of(to, "FINISHED"), node, stats -> spilled.apply(stats).finishedBytes());
    gauge(Metric.of(to, "NANOS"), node, stats -> spilled.apply(stats).nanos());
    gauge(Metric.of(to, "FAILURES"), node, stats -> spilled.apply(stats).failures());
  }

  private void gauge(
      final Metric metric, final ShuffleNode node, final ToLongFunction<NodeStats> value) {
    gauge(metric, () -> value.applyAsLong(node.stats()));
  }

  private void gauge(final Metric metric, final Gauge<Long> value) {
    registry.gauge(metric.key(), () -> value);
    if (!metric.formerly().isEmpty()) {
      registry.gauge(metric.formerly(), () -> value); // For dashboards of earlier releases.
    }
  }

  /** Returns the value of a metric now, by its key; 0 if this executor does not have it. */
  public long value(final String key) {
    final Object metric = registry.getMetrics().get(key);
    return metric instanceof Counter counter
        ? counter.getCount()
        : metric instanceof Gauge<?> gauge ? (long) gauge.getValue() : 0;
  }

  @Override
  public String sourceName() {
    return "zerohop";
  }

  @Override
  public MetricRegistry metricRegistry() {
    return registry;
  }
}
