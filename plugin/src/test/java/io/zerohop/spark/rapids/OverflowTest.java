package io.zerohop.spark.rapids;

import static org.assertj.core.api.Assertions.assertThat;

import io.zerohop.shuffle.ShuffleNode;
import io.zerohop.shuffle.block.BlockPath;
import io.zerohop.spark.LocalSpark;
import io.zerohop.spark.rapids.MapInput.Form;
import io.zerohop.spark.rapids.TestExchange.Store;
import io.zerohop.spark.rapids.gpu.GpuTables.Kind;
import java.util.List;
import java.util.function.UnaryOperator;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/** Batches that GPU memory, or all memory, has no room for are written and read as well. */
class OverflowTest {
  private static final List<Kind> KINDS = List.of(Kind.LONG, Kind.STRING, Kind.INTS);
  private static final int ROWS = 1500;

  @RegisterExtension static final LocalSpark SPARK = new LocalSpark();

  @TempDir java.nio.file.Path base;

  private TestExchange exchange(final Store store, final UnaryOperator<ShuffleNode.Setup> changes) {
    return new TestExchange(SPARK.context(), base, store, KINDS, 3, changes).packing(16 << 10);
  }

  @ParameterizedTest
  @EnumSource(names = {"KUDO", "PACKED"})
  void whatTheGpuHasNoRoomForLiesInHostMemory(final Form form) {
    try (TestExchange exchange =
        exchange(
            Store.DEVICE,
            config ->
                config.set("device.pool.size", 32 << 10).set("device.segment.size", 32 << 10))) {
      final TestTask task = new TestTask();
      exchange.write(task, exchange.input(form, 0.1, true, ROWS, ROWS));
      assertThat(task.context().taskMetrics().memoryBytesSpilled()).isPositive();
      assertThat(task.context().taskMetrics().diskBytesSpilled()).isZero();
      assertThat(exchange.node().stats().evictions().overflowedBytes()).isPositive();
      exchange.check();
      assertThat(exchange.node().fetches().moved(BlockPath.STAGED).blocks()).isZero();
    }
  }

  @ParameterizedTest
  @EnumSource(names = {"KUDO", "PACKED"})
  void whatNoMemoryHasRoomForBecomesAFile(final Form form) {
    try (TestExchange exchange =
        exchange(
            Store.DEVICE,
            config ->
                config
                    .set("device.pool.size", 32 << 10)
                    .set("device.segment.size", 32 << 10)
                    .set("pool.size", 96 << 10)
                    .set("segment.size", 32 << 10))) {
      final TestTask task = new TestTask();
      exchange.write(task, exchange.input(form, 0.1, true, ROWS, ROWS, ROWS));
      assertThat(task.context().taskMetrics().diskBytesSpilled()).isPositive();
      exchange.check();
      assertThat(exchange.node().fetches().moved(BlockPath.STAGED).blocks()).isPositive();
    }
  }

  @ParameterizedTest
  @EnumSource(names = {"KUDO", "PACKED"})
  void anExecutorWithoutAGpuOverflowsLikewise(final Form form) {
    try (TestExchange exchange =
        exchange(
            Store.HOST,
            config -> config.set("pool.size", 96 << 10).set("segment.size", 32 << 10))) {
      final TestTask task = new TestTask();
      exchange.write(task, exchange.input(form, 0.1, true, ROWS, ROWS, ROWS));
      assertThat(task.context().taskMetrics().diskBytesSpilled()).isPositive();
      exchange.check();
      assertThat(exchange.node().fetches().moved(BlockPath.STAGED).blocks()).isPositive();
    }
  }
}
