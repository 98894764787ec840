package io.zerohop.spark.blocktransfer;

import io.netty.buffer.ByteBuf;
import io.netty.buffer.ByteBufInputStream;
import java.io.IOException;
import java.io.InputStream;
import org.apache.spark.network.buffer.ManagedBuffer;
import org.apache.spark.network.buffer.NettyManagedBuffer;

/** Streams over bytes that Spark's client has fetched, each with its own position. */
final class BufferStream {
  private BufferStream() {}

  /**
   * A stream from the first byte, which takes no reference: it is read only while the caller holds
   * the buffer, and need not be closed.
   */
  static InputStream of(final ManagedBuffer buffer) throws IOException {
    if (!(buffer instanceof NettyManagedBuffer)) {
      return buffer.createInputStream();
    }
    // Its own streams share one position, so that the second would find nothing left.
    final ByteBuf duplicate = (ByteBuf) buffer.convertToNetty();
    duplicate.release(); // Retained for one who sends it.
    return new ByteBufInputStream(duplicate);
  }
}
