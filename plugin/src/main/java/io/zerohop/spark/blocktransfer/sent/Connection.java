package io.zerohop.spark.blocktransfer.sent;

import io.netty.buffer.ByteBufInputStream;
import io.netty.buffer.Unpooled;
import io.zerohop.spark.blocktransfer.sent.Uploads.Reply;
import java.io.InputStream;
import java.nio.ByteBuffer;
import java.util.function.BiConsumer;
import org.apache.spark.network.buffer.ManagedBuffer;
import org.apache.spark.network.buffer.NioManagedBuffer;
import org.apache.spark.network.client.RpcResponseCallback;
import org.apache.spark.network.client.TransportClient;
import org.apache.spark.network.shuffle.protocol.UploadBlockStream;

/** A connection to the block port of one executor. Thread safe; whoever connected closes it. */
final class Connection {
  private final TransportClient client;
  private final byte[] metadata;

  /**
   * @param client this connection's from now on
   * @param metadata what Spark asks of each upload
   */
  Connection(final TransportClient client, final byte[] metadata) {
    this.client = client;
    this.metadata = metadata;
  }

  /**
   * Uploads bytes, and does not wait.
   *
   * @param body must stay as it is until {@code end} was called
   * @param end called once, on a thread of Netty's, with the answer, or with a failure
   */
  void upload(final UploadId id, final ByteBuffer body, final BiConsumer<Reply, Throwable> end) {
    final ByteBuffer header = new UploadBlockStream(id.encode().name(), metadata).toByteBuffer();
    client.uploadStream(
        new NioManagedBuffer(header),
        new Body(body),
        new RpcResponseCallback() {
          @Override
          public void onSuccess(final ByteBuffer response) {
            end.accept(Reply.of(response), null);
          }

          @Override
          public void onFailure(final Throwable failure) {
            end.accept(null, failure);
          }
        });
  }

  boolean alive() {
    return client.isActive();
  }

  /** Runs once when it is closed, on a thread of Netty's; at once if it is already. */
  void onClosed(final Runnable action) {
    client.getChannel().closeFuture().addListener(ignored -> action.run());
  }

  /** What is under way fails. Does not wait. Idempotent. */
  void close() {
    client.getChannel().close();
  }

  /** Sent as it lies, without a copy of ours. */
  private static final class Body extends ManagedBuffer {
    private final ByteBuffer bytes;

    Body(final ByteBuffer bytes) {
      this.bytes = bytes;
    }

    @Override
    public long size() {
      return bytes.remaining();
    }

    @Override
    public ByteBuffer nioByteBuffer() {
      return bytes.duplicate();
    }

    @Override
    public InputStream createInputStream() {
      return new ByteBufInputStream(Unpooled.wrappedBuffer(bytes));
    }

    @Override
    public ManagedBuffer retain() {
      return this;
    }

    @Override
    public ManagedBuffer release() {
      return this;
    }

    @Override
    public Object convertToNetty() {
      return Unpooled.wrappedBuffer(bytes);
    }

    /** Spark has it from 4.0 on. */
    @Override
    public Object convertToNettyForSsl() {
      return Unpooled.wrappedBuffer(bytes);
    }
  }
}
