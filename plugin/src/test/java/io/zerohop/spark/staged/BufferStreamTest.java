package io.zerohop.spark.staged;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.netty.buffer.ByteBuf;
import io.netty.buffer.Unpooled;
import io.netty.util.IllegalReferenceCountException;
import io.zerohop.spark.staged.BlockTransferTransport.BufferStream;
import java.io.IOException;
import java.io.InputStream;
import java.nio.ByteBuffer;
import java.util.Random;
import org.apache.spark.network.buffer.NettyManagedBuffer;
import org.apache.spark.network.buffer.NioManagedBuffer;
import org.junit.jupiter.api.Test;

/** Two who read one buffer do not take bytes from each other. */
class BufferStreamTest {
  private static final byte[] BYTES = new byte[10_000];

  static {
    new Random(3).nextBytes(BYTES);
  }

  private static ByteBuf netty() {
    return Unpooled.directBuffer(BYTES.length).writeBytes(BYTES);
  }

  @Test
  void streamsOverNettysBuffersHaveEachAPosition() throws IOException {
    final ByteBuf bytes = netty();
    final NettyManagedBuffer buffer = new NettyManagedBuffer(bytes);
    final InputStream first = BufferStream.of(buffer);
    assertThat(first.readNBytes(100)).hasSize(100);
    final InputStream second = BufferStream.of(buffer);
    assertThat(second.readAllBytes()).isEqualTo(BYTES);
    assertThat(first.readAllBytes()).hasSize(BYTES.length - 100);
    assertThat(buffer.size()).isEqualTo(BYTES.length);
    assertThat(bytes.refCnt()).as("streams hold nothing").isEqualTo(1);
    buffer.release();
    assertThat(bytes.refCnt()).isZero();
    assertThatThrownBy(() -> BufferStream.of(buffer))
        .isInstanceOf(IllegalReferenceCountException.class);
  }

  @Test
  void aStreamThatOutlivesItsBufferReadsNoFreedMemory() throws IOException {
    final NettyManagedBuffer buffer = new NettyManagedBuffer(netty());
    final InputStream stream = BufferStream.of(buffer);
    buffer.release();
    assertThatThrownBy(stream::readAllBytes).isInstanceOf(IllegalReferenceCountException.class);
  }

  @Test
  void othersStreamsAreTheirOwn() throws IOException {
    final NioManagedBuffer buffer = new NioManagedBuffer(ByteBuffer.wrap(BYTES));
    for (int time = 0; time < 2; time++) {
      assertThat(BufferStream.of(buffer).readAllBytes()).isEqualTo(BYTES);
    }
  }
}
