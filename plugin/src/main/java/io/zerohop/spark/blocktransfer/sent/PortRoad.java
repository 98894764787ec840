package io.zerohop.spark.blocktransfer.sent;

import io.zerohop.device.posix.Clock;
import io.zerohop.device.posix.Memory;
import io.zerohop.shuffle.extent.Crc32c;
import io.zerohop.shuffle.transport.remote.carrier.Completion;
import io.zerohop.shuffle.transport.remote.carrier.Road;
import io.zerohop.shuffle.transport.remote.memory.Slab;
import io.zerohop.shuffle.transport.remote.memory.Slabs;
import io.zerohop.spark.blocktransfer.sent.Uploads.Reply;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.concurrent.Executor;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.atomic.LongAdder;
import java.util.function.LongConsumer;

/**
 * The way to one reader: each message is summed by a thread of ours and then sent from where it
 * lies, or compressed where that pays. Thread safe; owns its connection.
 */
final class PortRoad implements Road {
  /** The largest compressed size that is sent, in tenths of the size without compression. */
  private static final int MAX_TENTHS = 9;

  private final Connection connection;
  private final Means means;
  private final CodecChoice codecs;
  private final LongConsumer lost;

  /**
   * What all roads of an executor share.
   *
   * @param executor sums and compresses
   * @param slabs what is compressed goes to until it is sent
   * @param clock by which codecs are measured
   * @param saved bytes that compression has kept from the network
   */
  record Means(Executor executor, Slabs slabs, Clock clock, LongAdder saved) {}

  /**
   * @param codecs chooses for this road alone
   * @param lost tells the reader that messages of a transfer will not come; does not wait
   */
  PortRoad(
      final Connection connection,
      final Means means,
      final CodecChoice codecs,
      final LongConsumer lost) {
    this.connection = connection;
    this.means = means;
    this.codecs = codecs;
    this.lost = lost;
  }

  @Override
  public void send(
      final long id,
      final long offset,
      final long address,
      final long bytes,
      final Completion done) {
    try {
      means.executor().execute(() -> sendNow(id, offset, address, Math.toIntExact(bytes), done));
    } catch (final RejectedExecutionException e) {
      done.done("this executor is shutting down");
    }
  }

  private void sendNow(
      final long id,
      final long offset,
      final long address,
      final int bytes,
      final Completion done) {
    if (!connection.alive()) {
      done.done("the connection was lost"); // Netty's threads may have ended with it.
      return;
    }
    Message message = null;
    boolean begun = false;
    try {
      message = message(id, offset, address, bytes);
      upload(message, done);
      begun = true;
    } catch (final RuntimeException | OutOfMemoryError e) { // Nobody stands behind this thread.
      done.done(String.valueOf(e.getMessage()));
    } finally {
      if (!begun && message != null) {
        message.release();
      }
    }
  }

  /**
   * What is uploaded.
   *
   * @param copy holds the body, if that is compressed
   */
  private record Message(UploadId id, ByteBuffer body, Slab copy) {
    void release() {
      if (copy != null) {
        copy.release();
      }
    }

    /** From an event loop, which must not wait: the release of pinned memory may wait for a GPU. */
    void release(final Executor executor) {
      if (copy == null) {
        return;
      }
      try {
        executor.execute(copy::release);
      } catch (final RejectedExecutionException e) {
        copy.release(); // This executor is shutting down.
      }
    }
  }

  private void upload(final Message message, final Completion done) {
    final int bytes = message.body().remaining();
    codecs.begins();
    boolean begun = false;
    try {
      connection.upload(
          message.id(),
          message.body(),
          (reply, failure) -> {
            codecs.ended(failure == null ? bytes : 0);
            message.release(means.executor());
            ended(reply, failure, done);
          });
      begun = true;
    } finally {
      if (!begun) {
        codecs.ended(0);
      }
    }
  }

  private Message message(final long id, final long offset, final long address, final int bytes) {
    final int sum = Crc32c.of(address, bytes);
    final ByteBuffer plain = Memory.view(address, bytes);
    final MessageCodec codec = codecs.next(bytes);
    final Message compressed =
        codec == MessageCodec.PLAIN ? null : compressed(codec, id, offset, plain, sum);
    return compressed == null
        ? new Message(UploadId.message(id, offset, bytes, sum), plain, null)
        : compressed;
  }

  /** Null if that leaves too much of it, or there is no memory for it. */
  private Message compressed(
      final MessageCodec codec,
      final long id,
      final long offset,
      final ByteBuffer plain,
      final int sum) {
    final int bytes = plain.remaining();
    final int most = (int) ((long) bytes * MAX_TENTHS / 10);
    final Slab copy;
    try {
      copy = means.slabs().take(most);
    } catch (final RuntimeException | OutOfMemoryError e) {
      return null; // It goes as it is.
    }
    boolean used = false;
    try {
      final ByteBuffer body = Memory.view(copy.address(), most).order(ByteOrder.LITTLE_ENDIAN);
      final long begun = means.clock().nanos();
      final int left = codec.compress(plain, body.putInt(sum));
      codecs.compressed(
          codec, bytes, left == MessageCodec.NO_ROOM ? bytes : left, means.clock().since(begun));
      if (left == MessageCodec.NO_ROOM) {
        return null;
      }
      body.limit(body.position() + left).position(0);
      means.saved().add(bytes - body.remaining());
      used = true;
      return new Message(
          UploadId.compressed(id, offset, codec, body.remaining(), bytes), body, copy);
    } finally {
      if (!used) {
        copy.release();
      }
    }
  }

  private static void ended(final Reply reply, final Throwable failure, final Completion done) {
    if (failure != null) {
      done.done(String.valueOf(failure.getMessage()));
    } else {
      done.done(reply == Reply.TAKEN ? null : "the reader does not take it");
    }
  }

  @Override
  public void lost(final long id) {
    lost.accept(id);
  }

  @Override
  public void close() {
    connection.close();
  }
}
