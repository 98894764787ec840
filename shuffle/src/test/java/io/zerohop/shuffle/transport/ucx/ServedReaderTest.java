package io.zerohop.shuffle.transport.ucx;

import static org.assertj.core.api.Assertions.assertThat;

import java.nio.ByteBuffer;
import org.junit.jupiter.api.Test;

class ServedReaderTest {
  private final ServedReader reader = new ServedReader(null, Runnable::run, lease -> {});

  private static ServedLease lease() {
    return ServedLease.of((shuffleId, mapId) -> null, 1, false, ByteBuffer.allocate(4));
  }

  @Test
  void aLeaseThatIsFoundIsHeldOnceMore() {
    final ServedLease lease = lease();
    reader.hold(1, lease);
    assertThat(reader.find(1)).isSameAs(lease);
    assertThat(reader.drop(1)).isTrue();
    assertThat(lease.retain()).as("by who found it").isTrue();
    assertThat(reader.find(1)).isNull();
  }

  /** Another thread drops it: it was found in the table, and is released by now. */
  @Test
  void aLeaseThatEndsMeanwhileIsNotFound() {
    final ServedLease lease = lease();
    reader.hold(1, lease);
    lease.release();
    assertThat(reader.find(1)).isNull();
  }
}
