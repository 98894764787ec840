package io.zerohop.spark.blocktransfer.sent;

import io.zerohop.device.posix.Memory;
import io.zerohop.shuffle.extent.Crc32c;
import io.zerohop.shuffle.transport.remote.carrier.Arrivals;
import io.zerohop.shuffle.transport.remote.memory.Slab;
import io.zerohop.shuffle.transport.remote.memory.Slabs;
import io.zerohop.spark.blocktransfer.sent.Uploads.Arriving;
import io.zerohop.spark.blocktransfer.sent.Uploads.Reply;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.concurrent.Executor;
import java.util.concurrent.RejectedExecutionException;
import org.agrona.concurrent.UnsafeBuffer;

/**
 * A message on its way to its place in memory, where it is expanded if it is compressed, and its
 * sum is checked once it is there. For one thread.
 */
final class ArrivingMessage implements Arriving {
  private final UploadId id;
  private final Arrivals arrivals;
  private final Executor executor;
  private final Slabs slabs;
  private final UnsafeBuffer place;
  private int at;

  /**
   * @param address of as many bytes as the message has once it is expanded, and no fewer than it
   *     has on its way; they stay until the arrivals have been told
   * @param executor expands, and checks the sum
   * @param slabs has memory for what is expanded
   */
  ArrivingMessage(
      final UploadId id,
      final long address,
      final Arrivals arrivals,
      final Executor executor,
      final Slabs slabs) {
    this.id = id;
    this.arrivals = arrivals;
    this.executor = executor;
    this.slabs = slabs;
    this.place = new UnsafeBuffer(address, id.expanded());
  }

  /** The only copy, of the few bytes that the network has just brought. */
  @Override
  public void bytes(final ByteBuffer piece) {
    final int length = piece.remaining();
    place.putBytes(at, piece, length);
    at += length;
  }

  @Override
  public Reply complete() {
    try {
      executor.execute(this::check);
      return Reply.TAKEN;
    } catch (final RejectedExecutionException e) {
      failed("this executor is shutting down");
      return Reply.DROPPED;
    }
  }

  private void check() {
    final boolean good;
    try {
      good = id.kind() == UploadId.COMPRESSED ? expand() : isWhole(id.sum());
    } catch (final RuntimeException | LinkageError | OutOfMemoryError e) {
      failed(String.valueOf(e.getMessage())); // No memory, or the codec cannot be loaded here.
      return;
    }
    if (good) {
      arrivals.arrived(id.number(), id.place(), id.expanded(), null);
    } else {
      arrivals.damaged(id.number(), id.place(), id.expanded());
    }
  }

  private boolean isWhole(final int sum) {
    return Crc32c.of(place.addressOffset(), id.expanded()) == sum;
  }

  /**
   * What has come makes room for what it expands to. So no memory is taken for messages that wait
   * for a thread, only for one of each thread.
   */
  private boolean expand() {
    final MessageCodec codec = MessageCodec.of(id.type());
    if (codec == null || id.length() <= Integer.BYTES) {
      return false;
    }
    final Slab copy = slabs.take(id.length());
    try {
      final ByteBuffer body =
          Memory.view(copy.address(), id.length()).order(ByteOrder.LITTLE_ENDIAN);
      body.put(Memory.view(place.addressOffset(), id.length())).flip();
      final int sum = body.getInt();
      return codec.expand(body, Memory.view(place.addressOffset(), id.expanded())) == id.expanded()
          && isWhole(sum);
    } finally {
      copy.release();
    }
  }

  @Override
  public void failed(final String why) {
    arrivals.arrived(id.number(), id.place(), id.expanded(), why);
  }
}
