package io.zerohop.spark.rapids.read;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.zerohop.device.HostBuffer;
import io.zerohop.device.host.HostDevice;
import io.zerohop.spark.rapids.read.TableGather.HostStaging;
import java.io.ByteArrayInputStream;
import java.io.EOFException;
import java.io.IOException;
import java.io.InputStream;
import java.util.Random;
import org.apache.spark.unsafe.Platform;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class HostStagingTest {
  private static final int MEGABYTE = 1 << 20;

  private final HostDevice device = new HostDevice();
  private long open;
  private long most;

  private HostBuffer allocate(final long bytes) {
    final HostBuffer memory = device.hostBuffer(bytes);
    open += bytes;
    most = Math.max(most, open);
    return new HostBuffer() {
      @Override
      public long address() {
        return memory.address();
      }

      @Override
      public long bytes() {
        return bytes;
      }

      @Override
      public void close() {
        open -= bytes;
        memory.close();
      }
    };
  }

  @ParameterizedTest
  @ValueSource(longs = {64L * MEGABYTE + 1, 1L << 31, 1L << 43})
  void aLengthThatIsALieTakesLittleMemory(final long bytes) {
    try (HostStaging staging = new HostStaging(this::allocate)) {
      final InputStream in = new ByteArrayInputStream(new byte[1000]);
      assertThatThrownBy(() -> staging.read(in, bytes))
          .isInstanceOf(EOFException.class)
          .hasMessageContaining("after 1000 of " + bytes);
    }
    assertThat(most).isLessThanOrEqualTo(64L * MEGABYTE);
    assertThat(open).isZero();
  }

  @Test
  void longTablesAreReadWhole() throws IOException {
    final byte[] bytes = new byte[70 * MEGABYTE + 7];
    new Random(1).nextBytes(bytes);
    try (HostStaging staging = new HostStaging(this::allocate)) {
      final long first = staging.read(new ByteArrayInputStream(bytes), 100);
      final long whole = staging.read(new ByteArrayInputStream(bytes), bytes.length);
      final long last = staging.read(new ByteArrayInputStream(bytes), 100);
      assertThat(last).as("behind the first").isEqualTo(first + 256);
      final byte[] read = new byte[bytes.length];
      Platform.copyMemory(null, whole, read, Platform.BYTE_ARRAY_OFFSET, read.length);
      assertThat(read).isEqualTo(bytes);
      assertThat(staging.bytes()).isEqualTo(open);
    }
    assertThat(open).isZero();
  }
}
