package io.zerohop.spark.metrics;

import com.codahale.metrics.Counter;
import com.codahale.metrics.ExponentiallyDecayingReservoir;
import com.codahale.metrics.Gauge;
import com.codahale.metrics.Histogram;
import com.codahale.metrics.MetricRegistry;
import io.zerohop.shuffle.NodeStats;
import io.zerohop.shuffle.ShuffleNode;
import io.zerohop.shuffle.block.Link;
import io.zerohop.shuffle.block.Path;
import io.zerohop.shuffle.fetch.FetchContext.FetchCounters;
import io.zerohop.shuffle.pool.PoolStats;
import io.zerohop.shuffle.spill.Evictor.SpilledOutputs;
import io.zerohop.shuffle.transport.SharedTransfers;
import io.zerohop.spark.spillfiles.MapOutputFiles;
import java.util.function.Function;
import java.util.function.LongSupplier;
import java.util.function.ToLongFunction;
import org.apache.spark.metrics.source.Source;

/**
 * The source {@code zerohop} of Spark's metrics system: bytes and blocks by path, waiting time, and
 * the state of pools and files, as {@link Metric} lists them. Thread safe.
 */
public final class ExecutorMetrics implements Source {
  private final MetricRegistry registry = new MetricRegistry();

  /**
   * @param fetched what the executor's fetches count
   */
  public ExecutorMetrics(final FetchCounters fetched) {
    for (final Path path : Path.values()) {
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
    pool(Metric.HOST_LIMIT, Metric.HOST_USED, Metric.HOST_PEAK, node, NodeStats::host);
    spilled(
        Metric.FILES_OUTPUTS,
        Metric.FILES_SPILLED,
        Metric.FILES_FINISHED,
        Metric.FILES_NANOS,
        Metric.FILES_FAILURES,
        node,
        stats -> stats.evictions().toFiles());
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
    spilled(
        Metric.HOST_OUTPUTS,
        Metric.HOST_SPILLED,
        Metric.HOST_FINISHED,
        Metric.HOST_NANOS,
        Metric.HOST_FAILURES,
        node,
        stats -> stats.evictions().toHost());
    pool(Metric.DEVICE_LIMIT, Metric.DEVICE_USED, Metric.DEVICE_PEAK, node, NodeStats::device);
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

  /** Adds the gauge of the executor's blocks in files. */
  public void watch(final MapOutputFiles files) {
    gauge(Metric.FILES_BYTES, files::bytes);
  }

  /** Adds the gauge of the blocks that readers did not have to ask for themselves. */
  public void watch(final SharedTransfers transfers) {
    gauge(Metric.SHARED_BLOCKS, transfers::joined);
  }

  private void pool(
      final Metric limit,
      final Metric used,
      final Metric peak,
      final ShuffleNode node,
      final Function<NodeStats, PoolStats> pool) {
    gauge(limit, node, stats -> pool.apply(stats).limitBytes());
    gauge(used, node, stats -> pool.apply(stats).ownUsedBytes());
    gauge(peak, node, stats -> pool.apply(stats).peakBytes());
  }

  private void loans(
      final Metric metric, final ShuffleNode node, final ToLongFunction<PoolStats.Loans> count) {
    gauge(
        metric,
        node,
        stats -> stats.device() == null ? 0 : count.applyAsLong(stats.device().loans()));
  }

  private void spilled(
      final Metric outputs,
      final Metric bytes,
      final Metric finished,
      final Metric nanos,
      final Metric failures,
      final ShuffleNode node,
      final Function<NodeStats, SpilledOutputs> spilled) {
    gauge(outputs, node, stats -> spilled.apply(stats).outputs());
    gauge(bytes, node, stats -> spilled.apply(stats).bytes());
    gauge(finished, node, stats -> spilled.apply(stats).finishedBytes());
    gauge(nanos, node, stats -> spilled.apply(stats).nanos());
    gauge(failures, node, stats -> spilled.apply(stats).failures());
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

  @Override
  public String sourceName() {
    return "zerohop";
  }

  @Override
  public MetricRegistry metricRegistry() {
    return registry;
  }
}
