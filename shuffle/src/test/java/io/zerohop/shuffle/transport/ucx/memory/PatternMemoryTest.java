package io.zerohop.shuffle.transport.ucx.memory;

import static org.assertj.core.api.Assertions.assertThat;

import io.zerohop.device.Device;
import io.zerohop.device.host.HostDevice;
import io.zerohop.shuffle.DeviceOnlyGpu;
import java.util.stream.Stream;
import org.agrona.concurrent.UnsafeBuffer;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/** Bytes that are right are told from all others, on the host and where the host cannot look. */
class PatternMemoryTest {
  /** More than is looked at in one piece. */
  private static final int BYTES = 17 << 20;

  private static final long SEED = 4711;

  static Stream<Device> devices() {
    return Stream.of(new HostDevice(), new DeviceOnlyGpu());
  }

  @ParameterizedTest
  @MethodSource("devices")
  void allBytesFollowFromTheSeed(final Device device) {
    try (device;
        PatternMemory memory = PatternMemory.segment(device, BYTES)) {
      memory.fill(SEED);
      assertThat(memory.firstWrong(SEED, 0, BYTES)).isEqualTo(-1);
      assertThat(memory.firstWrong(SEED + 1, 0, BYTES)).isNotNegative();
      // Those of another place are not these.
      assertThat(memory.firstWrong(SEED, 13, BYTES - 13)).isNotNegative();
    }
  }

  @ParameterizedTest
  @MethodSource("devices")
  void whatWasNotOverwrittenIsWrongAndWhatLiesBehindIsGuarded(final Device device) {
    try (device;
        PatternMemory memory = PatternMemory.segment(device, BYTES)) {
      memory.fill(SEED);
      assertThat(memory.firstWrong(SEED, 0, 900)).as("no guard behind it").isEqualTo(900);
      memory.poison(900);
      assertThat(memory.firstWrong(SEED, 0, 900)).isBetween(0L, 8L);
      assertThat(memory.firstWrong(SEED, 0, 0)).as("the guard").isEqualTo(-1);
    }
  }

  @Test
  void oneWrongByteIsFoundWhereverItIs() {
    try (HostDevice device = new HostDevice();
        PatternMemory memory = PatternMemory.segment(device, BYTES)) {
      final UnsafeBuffer bytes = new UnsafeBuffer(memory.address(), BYTES);
      for (final int wrong : new int[] {0, 899, 900, 963, 16 << 20}) {
        final int length = wrong < 1000 ? 900 : BYTES;
        memory.poison(length);
        for (int i = 0; i < length; i++) {
          bytes.putByte(i, PatternMemory.at(SEED, 13L + i)); // As a get from place 13 does.
        }
        assertThat(memory.firstWrong(SEED, 13, length)).isEqualTo(-1);
        bytes.putByte(wrong, (byte) ~bytes.getByte(wrong));
        assertThat(memory.firstWrong(SEED, 13, length)).isEqualTo(wrong);
      }
    }
  }
}
