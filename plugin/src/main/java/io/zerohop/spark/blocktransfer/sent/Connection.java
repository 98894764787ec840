package io.zerohop.spark.blocktransfer.sent;

import io.netty.buffer.ByteBufInputStream;
import io.netty.buffer.Unpooled;
import io.zerohop.spark.blocktransfer.sent.Uploads.Reply;
import java.io.InputStream;
import java.nio.ByteBuffer;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.BiConsumer;
import org.apache.spark.network.buffer.ManagedBuffer;
import org.apache.spark.network.buffer.NioManagedBuffer;
import org.apache.spark.network.client.RpcResponseCallback;
import org.apache.spark.network.client.TransportClient;
import org.apache.spark.network.shuffle.protocol.UploadBlockStream;
import org.jspecify.annotations.Nullable;

/** A connection to the block port of one executor. Thread safe; whoever connected closes it. */
final class Connection {
  private final TransportClient client;
  private final byte[] metadata;
  private final AtomicInteger underWay;
  private volatile boolean closed;

  /**
   * @param client this connection's from now on
   * @param metadata what Spark asks of each upload
   * @param underWay counts uploads that have not ended, those of other connections too
   */
  Connection(final TransportClient client, final byte[] metadata, final AtomicInteger underWay) {
    this.client = client;
    this.metadata = metadata;
    this.underWay = underWay;
  }

  /**
   * Uploads bytes, and does not wait. A connection that fails one is closed: it may be lost, and
   * Spark takes it for active for some time after that.
   *
   * @param body must stay as it is until {@code end} was called
   * @param end called once, on a thread of Netty's, with the answer, or with a failure; not called
   *     if this throws
   */
  void upload(
      final UploadId id,
      final ByteBuffer body,
      final BiConsumer<@Nullable Reply, @Nullable Throwable> end) {
    final ByteBuffer header = new UploadBlockStream(id.encode().name(), metadata).toByteBuffer();
    final Outcome outcome = new Outcome(end);
    try {
      client.uploadStream(new NioManagedBuffer(header), new Body(body), outcome);
    } catch (final RuntimeException | OutOfMemoryError e) {
      if (outcome.forget()) {
        close();
        throw e; // Which tells the caller.
      }
    }
  }

  /** Reports the end of one upload once; Spark may report its failure twice. */
  private final class Outcome implements RpcResponseCallback {
    private final BiConsumer<@Nullable Reply, @Nullable Throwable> end;
    private final AtomicBoolean ended = new AtomicBoolean();

    Outcome(final BiConsumer<@Nullable Reply, @Nullable Throwable> end) {
      this.end = end;
      underWay.incrementAndGet();
    }

    @Override
    public void onSuccess(final ByteBuffer response) {
      tell(Reply.of(response), null);
    }

    @Override
    public void onFailure(final Throwable failure) {
      tell(null, failure);
    }

    private void tell(final @Nullable Reply reply, final @Nullable Throwable failure) {
      if (ended.compareAndSet(false, true)) {
        if (failure != null) {
          close();
        }
        try {
          end.accept(reply, failure);
        } finally {
          underWay.decrementAndGet();
        }
      }
    }

    /** Nothing is said of it; false if something was. */
    boolean forget() {
      final boolean untold = ended.compareAndSet(false, true);
      if (untold) {
        underWay.decrementAndGet();
      }
      return untold;
    }
  }

  boolean alive() {
    return !closed && client.isActive();
  }

  /** Runs once when it is closed, on a thread of Netty's; at once if it is already. */
  void onClosed(final Runnable action) {
    client.getChannel().closeFuture().addListener(ignored -> action.run());
  }

  /** What is under way fails. Does not wait. Idempotent. */
  void close() {
    closed = true;
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
