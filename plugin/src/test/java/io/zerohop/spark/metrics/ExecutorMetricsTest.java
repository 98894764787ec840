package io.zerohop.spark.metrics;

import static org.assertj.core.api.Assertions.assertThat;

import com.codahale.metrics.MetricRegistry;
import io.zerohop.device.Leaks;
import io.zerohop.shuffle.ShuffleNode;
import io.zerohop.shuffle.TestBlocks;
import io.zerohop.shuffle.TestNodes;
import io.zerohop.shuffle.keeper.KeeperStats;
import io.zerohop.spark.metrics.Metric.Owner;
import io.zerohop.spark.rapids.gpu.FakeGpuDevice;
import java.nio.file.Path;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class ExecutorMetricsTest {
  private static final int SHUFFLE = 1;
  private static final int BATCHES = 2;
  private static final int PARTITIONS = 8;
  private static final int MOST = 1_000;

  @TempDir private Path base;
  private final Leaks leaks = new Leaks();

  @Test
  void waitsHaveACountAndADistribution() {
    try (ShuffleNode node =
        ShuffleNode.start(TestNodes.config(base.resolve("s"), "executor"), null)) {
      final MetricRegistry metrics = new ExecutorMetrics(node.fetches()).metricRegistry();
      assertThat(count(metrics, Metric.FETCH_WAITS)).isZero();
      assertThat(gauge(metrics, Metric.FETCH_WAIT_P99)).isZero();
      TestBlocks.write(node, SHUFFLE, 0, BATCHES, PARTITIONS, MOST);
      TestNodes.fetchAndCheck(
          node,
          TestNodes.noStaging(),
          BATCHES,
          MOST,
          TestBlocks.source("executor", node.location(), SHUFFLE, 0, 1, BATCHES, PARTITIONS, MOST));
      final long waits = count(metrics, Metric.FETCH_WAITS);
      final long median = gauge(metrics, Metric.FETCH_WAIT_MEDIAN);
      final long p99 = gauge(metrics, Metric.FETCH_WAIT_P99);
      final long sum = count(metrics, Metric.FETCH_WAIT);
      assertThat(waits).isPositive();
      assertThat(median).isPositive().isLessThanOrEqualTo(p99);
      assertThat(p99).as("one of them").isLessThanOrEqualTo(sum);
      assertThat(sum).as("of so many").isGreaterThanOrEqualTo(median * waits / 2);
      node.unregisterShuffle(SHUFFLE);
    }
    leaks.check();
  }

  @Test
  void theKeepersNumbersAreWhatItSaidLast() {
    try (ShuffleNode node =
        ShuffleNode.start(TestNodes.config(base.resolve("s"), "executor"), null)) {
      final ExecutorMetrics metrics = new ExecutorMetrics(node.fetches());
      metrics.watchKeeper(
          node, () -> new KeeperStats(0, 0, 1, 2, 3, 4, 5, 0, 6, 0, 0, 7, 8, 9, 0, 10, ""));
      final MetricRegistry registry = metrics.metricRegistry();
      assertThat(gauge(registry, Metric.KEEPER)).isZero();
      assertThat(
              Stream.of(
                      Metric.KEEPER_HELD,
                      Metric.KEEPER_LEFT,
                      Metric.KEEPER_LEFT_OUTPUTS,
                      Metric.KEEPER_ADOPTED,
                      Metric.KEEPER_DROPPED,
                      Metric.KEEPER_REFUSED,
                      Metric.KEEPER_SENT_BLOCKS,
                      Metric.KEEPER_SENT,
                      Metric.KEEPER_FILES,
                      Metric.KEEPER_FILES_OUTPUTS)
                  .map(metric -> gauge(registry, metric)))
          .containsExactly(1L, 2L, 3L, 4L, 5L, 6L, 7L, 8L, 9L, 10L);
    }
    leaks.check();
  }

  @Test
  void anExecutorWithGpuMemoryHasTheMetricsOfIt() {
    try (ShuffleNode node =
        ShuffleNode.start(TestNodes.config(base.resolve("s"), "executor"), new FakeGpuDevice())) {
      final ExecutorMetrics metrics = new ExecutorMetrics(node.fetches());
      metrics.watch(node);
      assertThat(metrics.metricRegistry().getNames())
          .containsAll(
              Stream.of(Metric.values())
                  .filter(one -> one.owner() == Owner.MEMORY || one.owner() == Owner.GPU)
                  .map(Metric::key)
                  .toList());
      assertThat(metrics.value(Metric.DEVICE_LIMIT.key())).isPositive();
    }
  }

  @Test
  void metricsAreReadByTheirKeys() {
    try (ShuffleNode node =
        ShuffleNode.start(TestNodes.config(base.resolve("s"), "executor"), null)) {
      final ExecutorMetrics metrics = new ExecutorMetrics(node.fetches());
      metrics.watch(node);
      metrics.watchKeeper(
          node, () -> new KeeperStats(0, 0, 1, 2, 3, 4, 5, 0, 6, 0, 0, 7, 8, 9, 0, 10, ""));
      assertThat(metrics.metricRegistry().getNames())
          .containsAll(
              Stream.of(Metric.values())
                  .filter(one -> one.owner() == Owner.MEMORY || one.owner() == Owner.KEEPER)
                  .map(Metric::key)
                  .toList());
      assertThat(metrics.value(Metric.KEEPER_LEFT.key())).isEqualTo(2);
      assertThat(metrics.value(Metric.POOL_LIMIT.key())).isPositive();
      assertThat(metrics.value(Metric.FETCH_WAITS.key())).as("a counter").isZero();
      assertThat(metrics.value(Metric.DEVICE_USED.key())).as("without a GPU").isZero();
    }
    leaks.check();
  }

  @Test
  void oldNamesGoOn() {
    try (ShuffleNode node =
        ShuffleNode.start(TestNodes.config(base.resolve("s"), "executor"), null)) {
      final ExecutorMetrics metrics = new ExecutorMetrics(node.fetches());
      metrics.watch(node);
      assertThat(metrics.metricRegistry().getGauges())
          .containsKeys("landing.slabs", "receive.buffers")
          .containsKeys("landing.wait.nanos", "receive.wait.nanos")
          .containsKeys("strangers", "connections.unauthenticated");
    }
    leaks.check();
  }

  private static long count(final MetricRegistry metrics, final Metric metric) {
    return metrics.getCounters().get(metric.key()).getCount();
  }

  private static long gauge(final MetricRegistry metrics, final Metric metric) {
    return (long) metrics.getGauges().get(metric.key()).getValue();
  }
}
