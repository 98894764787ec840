package io.zerohop.spark.staged;

import io.zerohop.shuffle.MapOutputLease;
import io.zerohop.shuffle.ShuffleNode;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.nio.ByteBuffer;
import java.util.function.Supplier;
import org.apache.spark.SparkEnv;
import org.apache.spark.network.buffer.ManagedBuffer;
import org.apache.spark.network.buffer.NioManagedBuffer;
import org.apache.spark.storage.ShuffleBlockId;

/**
 * One block of a map output in memory, for Spark's block transfer service: compressed and encrypted
 * as a file would have it, but only when its bytes are asked for, which Spark does in the thread
 * that sends them. So a request for a thousand blocks costs nothing before its first one is sent,
 * and only blocks on their way take memory. Thread safe.
 */
final class MemoryBlockBuffer extends ManagedBuffer {
  /** Larger blocks are served from a file, so that they never fill the heap. */
  static final long MAX_PLAIN_BYTES = 32L << 20;

  private final ShuffleNode node;
  private final ShuffleBlockId id;
  private final Supplier<ManagedBuffer> inFile;
  private ManagedBuffer wrapped;

  /**
   * @param inFile gives the block if it has left memory when it is asked for
   */
  MemoryBlockBuffer(
      final ShuffleNode node, final ShuffleBlockId id, final Supplier<ManagedBuffer> inFile) {
    this.node = node;
    this.id = id;
    this.inFile = inFile;
  }

  private synchronized ManagedBuffer wrapped() {
    if (wrapped == null) {
      wrapped = wrap();
    }
    return wrapped;
  }

  private ManagedBuffer wrap() {
    try (MapOutputLease output = node.lease(id.shuffleId(), id.mapId())) {
      if (output == null) {
        return inFile.get();
      }
      output.checkIntact(id.reduceId()); // Its checksum is not that of what is sent.
      final ByteArrayOutputStream bytes = new ByteArrayOutputStream();
      try (InputStream plain = output.stream(id.reduceId());
          OutputStream out = SparkEnv.get().serializerManager().wrapStream(id, bytes)) {
        plain.transferTo(out);
      }
      return new NioManagedBuffer(ByteBuffer.wrap(bytes.toByteArray()));
    } catch (final IOException e) {
      throw new IllegalStateException("Could not wrap " + id, e);
    }
  }

  @Override
  public long size() {
    return wrapped().size();
  }

  @Override
  public ByteBuffer nioByteBuffer() throws IOException {
    return wrapped().nioByteBuffer();
  }

  @Override
  public InputStream createInputStream() throws IOException {
    return wrapped().createInputStream();
  }

  @Override
  public Object convertToNetty() throws IOException {
    return wrapped().convertToNetty();
  }

  /** Spark has it from 4.0 on. */
  @Override
  public Object convertToNettyForSsl() throws IOException {
    return SslBytes.of(wrapped());
  }

  @Override
  public ManagedBuffer retain() {
    return this;
  }

  /** Drops the wrapped bytes; they are made again should somebody ask once more. */
  @Override
  public synchronized ManagedBuffer release() {
    wrapped = null;
    return this;
  }
}
