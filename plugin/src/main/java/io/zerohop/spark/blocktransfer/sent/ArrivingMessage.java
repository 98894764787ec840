package io.zerohop.spark.blocktransfer.sent;

import io.zerohop.shuffle.extent.Crc32c;
import io.zerohop.shuffle.transport.remote.carrier.Arrivals;
import io.zerohop.spark.blocktransfer.sent.Uploads.Arriving;
import io.zerohop.spark.blocktransfer.sent.Uploads.Reply;
import java.nio.ByteBuffer;
import java.util.concurrent.Executor;
import java.util.concurrent.RejectedExecutionException;
import org.agrona.concurrent.UnsafeBuffer;

/** A message on its way to its place in memory, whose sum is checked once it is there. */
final class ArrivingMessage implements Arriving {
  private final UploadId id;
  private final Arrivals arrivals;
  private final Executor executor;
  private final UnsafeBuffer place;
  private int at;

  /**
   * @param address of as many bytes as the message has, which stay until the arrivals have been
   *     told
   * @param executor checks the sum
   */
  ArrivingMessage(
      final UploadId id, final long address, final Arrivals arrivals, final Executor executor) {
    this.id = id;
    this.arrivals = arrivals;
    this.executor = executor;
    this.place = new UnsafeBuffer(address, id.length());
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
    if (Crc32c.of(place.addressOffset(), id.length()) == id.sum()) {
      arrivals.arrived(id.number(), id.place(), id.length(), null);
    } else {
      arrivals.damaged(id.number(), id.place(), id.length());
    }
  }

  @Override
  public void failed(final String why) {
    arrivals.arrived(id.number(), id.place(), id.length(), why);
  }
}
