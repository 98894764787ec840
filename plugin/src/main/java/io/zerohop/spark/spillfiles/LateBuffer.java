package io.zerohop.spark.spillfiles;

import java.io.IOException;
import java.io.InputStream;
import java.nio.ByteBuffer;
import org.apache.spark.network.buffer.ManagedBuffer;

/**
 * A buffer whose bytes are prepared only when Spark requests them, in the thread that sends them.
 */
public abstract class LateBuffer extends ManagedBuffer {

  /** Prepares the bytes, at the first call, and returns the buffer that has them. Thread safe. */
  protected abstract ManagedBuffer bytes() throws IOException;

  @Override
  public final ByteBuffer nioByteBuffer() throws IOException {
    return bytes().nioByteBuffer();
  }

  @Override
  public final InputStream createInputStream() throws IOException {
    return bytes().createInputStream();
  }

  @Override
  public final Object convertToNetty() throws IOException {
    return bytes().convertToNetty();
  }

  /** Spark has it from 4.0 on. */
  @Override
  public final Object convertToNettyForSsl() throws IOException {
    return SslBytes.of(bytes());
  }
}
