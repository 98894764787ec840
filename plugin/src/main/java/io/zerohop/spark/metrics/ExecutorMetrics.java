package io.zerohop.spark.metrics;

import com.codahale.metrics.Counter;
import com.codahale.metrics.Gauge;
import com.codahale.metrics.MetricRegistry;
import io.zerohop.shuffle.NodeStats;
import io.zerohop.shuffle.ShuffleNode;
import io.zerohop.shuffle.block.Path;
import io.zerohop.shuffle.pool.PoolStats;
import io.zerohop.shuffle.spill.SpilledOutputs;
import io.zerohop.shuffle.transport.SharedTransfers;
import io.zerohop.spark.spillfiles.MapOutputFiles;
import java.util.EnumMap;
import java.util.Map;
import java.util.function.Function;
import java.util.function.ToLongFunction;
import org.apache.spark.metrics.source.Source;

/**
 * Zerohop in Spark's metrics system, as source {@code zerohop}: bytes and blocks per path, time
 * that readers waited, and the state of the pools and of files. Thread safe.
 */
public final class ExecutorMetrics implements Source {
  private final MetricRegistry registry = new MetricRegistry();
  private final Map<Path, Counter> bytes = new EnumMap<>(Path.class);
  private final Map<Path, Counter> blocks = new EnumMap<>(Path.class);
  private final Counter waitedNanos;

  public ExecutorMetrics() {
    for (final Path path : Path.values()) {
      bytes.put(path, registry.counter(path.label() + ".bytes"));
      blocks.put(path, registry.counter(path.label() + ".blocks"));
    }
    waitedNanos = registry.counter("fetch.wait.nanos");
  }

  /** Adds the gauges of the executor's blocks in memory. */
  public void watch(final ShuffleNode node) {
    pool("pool.host", node, NodeStats::host);
    spilled("spill.files", node, stats -> stats.evictions().toFiles());
    gauge("landing.slabs", node, stats -> stats.receiveBuffers().slabs());
    gauge("landing.wait.nanos", node, stats -> stats.receiveBuffers().waitNanos());
    if (node.hasGpu()) {
      spilled("spill.host", node, stats -> stats.evictions().toHost());
      pool("pool.device", node, NodeStats::device);
      gauge("pool.device.overflow.bytes", node, stats -> stats.evictions().overflowedBytes());
      gauge("pool.device.shrunk.bytes", node, stats -> stats.evictions().shrunkBytes());
      gauge("commits.async", node, stats -> stats.outputs().asyncCommits());
      gauge("commits.pending", node, stats -> stats.outputs().pendingCommits());
      gauge("fetch.unready", node, stats -> stats.leases().unreadyOutputs());
    }
    gauge("pool.limit.bytes", node, NodeStats::poolLimitBytes);
    gauge("pool.reserved.bytes", node, NodeStats::poolReservedBytes);
    gauge("pool.used.bytes", node, NodeStats::poolUsedBytes);
    gauge("pool.segments", node, NodeStats::segments);
    gauge("leases.open", node, stats -> stats.leases().open());
    gauge("peers", node, stats -> stats.peers().readable());
    gauge("strangers", node, stats -> stats.peers().strangers());
    final Gauge<Long> port = () -> (long) node.location().port();
    registry.gauge("control.port", () -> port);
  }

  /** Adds the gauge of the executor's blocks in files. */
  public void watch(final MapOutputFiles files) {
    final Gauge<Long> gauge = files::bytes;
    registry.gauge("files.bytes", () -> gauge);
  }

  /** Adds the gauge of the blocks that readers did not have to ask for themselves. */
  public void watch(final SharedTransfers transfers) {
    final Gauge<Long> gauge = transfers::joined;
    registry.gauge("staged.shared.blocks", () -> gauge);
  }

  private void pool(
      final String name, final ShuffleNode node, final Function<NodeStats, PoolStats> pool) {
    gauge(name + ".limit.bytes", node, stats -> pool.apply(stats).limitBytes());
    gauge(name + ".used.bytes", node, stats -> pool.apply(stats).usedBytes());
    gauge(name + ".peak.bytes", node, stats -> pool.apply(stats).peakBytes());
  }

  private void spilled(
      final String name,
      final ShuffleNode node,
      final Function<NodeStats, SpilledOutputs> spilled) {
    gauge(name + ".outputs", node, stats -> spilled.apply(stats).outputs());
    gauge(name + ".bytes", node, stats -> spilled.apply(stats).bytes());
    gauge(name + ".nanos", node, stats -> spilled.apply(stats).nanos());
    gauge(name + ".failures", node, stats -> spilled.apply(stats).failures());
  }

  private void gauge(
      final String name, final ShuffleNode node, final ToLongFunction<NodeStats> value) {
    final Gauge<Long> gauge = () -> value.applyAsLong(node.stats());
    registry.gauge(name, () -> gauge);
  }

  void fetched(final Path path, final long blockCount, final long byteCount) {
    bytes.get(path).inc(byteCount);
    blocks.get(path).inc(blockCount);
  }

  void waited(final long nanos) {
    waitedNanos.inc(nanos);
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
