package io.zerohop.spark.rapids;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import ai.rapids.cudf.DeviceMemoryBuffer;
import ai.rapids.cudf.FakeGpu;
import com.nvidia.spark.rapids.jni.GpuRetryOOM;
import com.nvidia.spark.rapids.spill.SpillFramework$;
import com.nvidia.spark.rapids.spill.SpillableDeviceStore;
import io.zerohop.spark.LocalSpark;
import io.zerohop.spark.rapids.MapInput.Form;
import io.zerohop.spark.rapids.TestExchange.Store;
import io.zerohop.spark.rapids.gpu.GpuTables.Kind;
import java.util.List;
import org.apache.spark.SparkConf;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/** RAPIDS and our pool on one GPU: who runs out of memory gets what the other can do without. */
class PressureTest {
  private static final int MIB = 1 << 20;

  @RegisterExtension static final LocalSpark SPARK = new LocalSpark();

  @TempDir java.nio.file.Path base;

  private final SpillableDeviceStore store = SpillFramework$.MODULE$.stores().deviceStore();
  private TestExchange exchange;
  private Runnable unshare;

  @BeforeEach
  void start() {
    exchange =
        new TestExchange(
            SPARK.context(),
            base,
            Store.DEVICE,
            List.of(Kind.LONG, Kind.STRING),
            3,
            config -> config.set("device.pool.size", 8 * MIB).set("device.segment.size", MIB));
    unshare = RapidsShuffle.shareMemory(new SparkConf(false), exchange.node());
  }

  @AfterEach
  void end() {
    unshare.run();
    assertThat(store.size()).isZero();
    exchange.close();
  }

  @ParameterizedTest
  @EnumSource(names = {"KUDO", "PACKED"})
  void thePoolGivesWhatItHoldsWhenRapidsRunsOut(final Form form) {
    exchange.write(form, 0.1, 400);
    exchange.write(form, 0.1, 400);
    final long pool = exchange.node().stats().device().reservedBytes();
    assertThat(pool).isPositive();
    final long wanted = FakeGpu.free() + pool;
    try (DeviceMemoryBuffer all = DeviceMemoryBuffer.allocate(wanted)) {
      assertThat(all.getLength()).isEqualTo(wanted);
      assertThat(exchange.node().stats().device().reservedBytes()).isZero();
      assertThat(exchange.node().stats().evictions().shrunkBytes()).isEqualTo(pool);
    }
    exchange.check();
  }

  @Test
  void aMapTaskGoesOnWithWhatThePoolGives() {
    exchange.write(Form.KUDO, 0.1, 400);
    final MapInput next = exchange.input(Form.KUDO, 0.1, true, 400);
    try (DeviceMemoryBuffer rest = DeviceMemoryBuffer.allocate(FakeGpu.free() - 1000)) {
      assertThat(rest.getLength()).isPositive();
      exchange.write(new TestTask(), next);
      assertThat(exchange.node().stats().evictions().shrunkBytes()).isPositive();
    }
    exchange.check();
  }

  @Test
  void rapidsFailsWhereThePoolHasNothingToGive() {
    assertThatThrownBy(() -> DeviceMemoryBuffer.allocate(TestExchange.GPU_BYTES + 1))
        .isInstanceOf(GpuRetryOOM.class);
  }

  @Test
  void thePoolDoesWithoutWhatRapidsHas() {
    try (DeviceMemoryBuffer most = DeviceMemoryBuffer.allocate(FakeGpu.free() - MIB / 2)) {
      exchange.write(Form.KUDO, 0.1, 400);
      assertThat(exchange.node().stats().evictions().overflowedBytes()).isPositive();
      assertThat(most.getLength()).isPositive();
    }
    exchange.check();
  }
}
