package io.zerohop.spark.blocktransfer.sent;

import io.zerohop.shuffle.extent.Crc32c;
import io.zerohop.shuffle.transport.remote.carrier.Arrivals;
import io.zerohop.spark.blocktransfer.sent.Uploads.Arriving;
import io.zerohop.spark.blocktransfer.sent.Uploads.Reply;
import java.nio.ByteBuffer;
import java.util.concurrent.Executor;
import java.util.concurrent.RejectedExecutionException;
import org.agrona.concurrent.UnsafeBuffer;

/**
 * A message on its way to its place in memory, whose sum is checked once it is there. Thread safe:
 * an event loop brings it, and any thread may stop it.
 */
final class ArrivingMessage implements Arriving {
  private final UploadId id;
  private final Arrivals arrivals;
  private final Executor executor;
  private UnsafeBuffer place;
  private int at;

  /** Whether nothing is written any more. */
  private boolean over;

  private ArrivingMessage(final UploadId id, final Arrivals arrivals, final Executor executor) {
    this.id = id;
    this.arrivals = arrivals;
    this.executor = executor;
  }

  /**
   * A message that comes.
   *
   * @param arrivals say where it goes, to memory that stays until they have been told of its end
   * @param executor checks the sum
   * @return null if nobody waits for it
   */
  static ArrivingMessage of(final UploadId id, final Arrivals arrivals, final Executor executor) {
    final ArrivingMessage message = new ArrivingMessage(id, arrivals, executor);
    return message.begin() ? message : null;
  }

  /** It may be stopped before it has a place. */
  private synchronized boolean begin() {
    final long address = arrivals.arriving(id.number(), id.place(), id.length(), this::stop);
    if (address != 0) {
      place = new UnsafeBuffer(address, id.length());
    }
    return address != 0;
  }

  /** The only copy, of the few bytes that the network has just brought. */
  @Override
  public synchronized void bytes(final ByteBuffer piece) {
    if (!over) {
      final int length = piece.remaining();
      place.putBytes(at, piece, length);
      at += length;
    }
  }

  @Override
  public Reply complete() {
    if (!end()) {
      return Reply.DROPPED;
    }
    try {
      executor.execute(this::check);
      return Reply.TAKEN;
    } catch (final RejectedExecutionException e) {
      tell("this executor is shutting down");
      return Reply.DROPPED;
    }
  }

  private void check() {
    if (Crc32c.of(place.addressOffset(), id.length()) == id.sum()) {
      tell(null);
    } else {
      arrivals.damaged(id.number(), id.place(), id.length());
    }
  }

  @Override
  public void failed(final String why) {
    if (end()) {
      tell(why);
    }
  }

  /** Nobody waits for it any more, and the rest may never come: its owner's host may be gone. */
  private void stop() {
    failed("nobody waits for it any more");
  }

  private synchronized boolean end() {
    final boolean wasUnderWay = !over;
    over = true;
    return wasUnderWay;
  }

  private void tell(final String failure) {
    arrivals.arrived(id.number(), id.place(), id.length(), failure);
  }
}
