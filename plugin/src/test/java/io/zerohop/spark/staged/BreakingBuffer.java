package io.zerohop.spark.staged;

import java.io.InputStream;
import java.nio.ByteBuffer;
import org.apache.spark.network.buffer.ManagedBuffer;

/** One at which Spark's service closes the connection that it is sent by, if it is large. */
final class BreakingBuffer extends ManagedBuffer {
  private final Runnable before;

  /**
   * @param before is done in front of that
   */
  BreakingBuffer(final Runnable before) {
    this.before = before;
  }

  private IllegalStateException broken() {
    before.run();
    return new IllegalStateException("a test wants this connection to break");
  }

  @Override
  public long size() {
    throw broken();
  }

  @Override
  public ByteBuffer nioByteBuffer() {
    throw broken();
  }

  @Override
  public InputStream createInputStream() {
    throw broken();
  }

  @Override
  public Object convertToNetty() {
    throw broken();
  }

  @Override
  public Object convertToNettyForSsl() {
    throw broken();
  }

  @Override
  public ManagedBuffer retain() {
    return this;
  }

  @Override
  public ManagedBuffer release() {
    return this;
  }
}
