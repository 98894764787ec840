package io.zerohop.shuffle.pool;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.zerohop.device.host.HostDevice;
import io.zerohop.shuffle.DeviceOnlyGpu;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

class SegmentMemoryTest {
  private final HostDevice host = new HostDevice();
  private final DeviceOnlyGpu gpu = new DeviceOnlyGpu();
  private final List<String> held = new ArrayList<>();
  private final SegmentMemory memory = new SegmentMemory(3, host.allocate(4096));

  /** What a library holds of the memory. */
  private static final class Hold implements AutoCloseable {
    private final Runnable end;

    private Hold(final Runnable end) {
      this.end = end;
    }

    @Override
    public void close() {
      end.run();
    }
  }

  private Hold hold() {
    held.add("it");
    return new Hold(() -> held.remove("it"));
  }

  @AfterEach
  void nothingIsLeft() {
    memory.close();
    gpu.close();
    host.close();
  }

  @Test
  void aGpuReachesItOnceAndUntilItIsClosed() {
    assertThat(memory.pin(gpu)).isTrue();
    assertThat(memory.pin(gpu)).isTrue();
    assertThat(gpu.pins()).isOne();
    memory.close();
    assertThat(gpu.pins()).isZero();
    memory.close();
    assertThat(gpu.pins()).isZero();
  }

  @Test
  void aGpuThatCannotReachItIsNotAskedAgain() {
    gpu.refusePins(true);
    assertThat(memory.pin(gpu)).isFalse();
    gpu.refusePins(false);
    assertThat(memory.pin(gpu)).isFalse();
    assertThat(gpu.pins()).isZero();
  }

  @Test
  void nothingIsDoneWithMemoryThatIsNotThere() {
    assertThat(memory.attach(Hold.class, this::hold))
        .isSameAs(memory.attach(Hold.class, this::hold));
    assertThat(held).hasSize(1);
    assertThat(memory.pin(gpu)).isTrue();
    memory.close();
    assertThat(held).isEmpty();
    assertThatThrownBy(() -> memory.attach(Hold.class, this::hold))
        .isInstanceOf(IllegalStateException.class)
        .hasMessage("segment 3 is closed");
    assertThatThrownBy(() -> memory.pin(gpu))
        .isInstanceOf(IllegalStateException.class)
        .hasMessage("segment 3 is closed");
    assertThat(held).isEmpty();
    assertThat(gpu.pins()).isZero();
  }
}
