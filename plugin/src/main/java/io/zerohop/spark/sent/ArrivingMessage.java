package io.zerohop.spark.sent;

import io.zerohop.device.Crc32c;
import io.zerohop.device.posix.Memory;
import io.zerohop.shuffle.transport.remote.Carrier.Arrivals;
import io.zerohop.shuffle.transport.remote.Slabs;
import io.zerohop.shuffle.transport.remote.Slabs.Slab;
import io.zerohop.spark.sent.Uploads.Arriving;
import io.zerohop.spark.sent.Uploads.Reply;
import io.zerohop.spark.sent.Uploads.UploadId;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.concurrent.Executor;
import java.util.concurrent.RejectedExecutionException;
import org.agrona.concurrent.UnsafeBuffer;
import org.jspecify.annotations.Nullable;

/**
 * A message that is being received into its place in memory. It is expanded if compressed, and its
 * checksum is verified at the end. Thread safe: an event loop brings it, and any thread may stop
 * it.
 */
final class ArrivingMessage implements Arriving {
  private final UploadId id;
  private final Arrivals arrivals;
  private final Executor executor;
  private final Slabs slabs;

  /** Nowhere until {@link #begin}. */
  private final UnsafeBuffer place = new UnsafeBuffer(0, 0);

  private int at;

  /** Whether nothing is written any more. */
  private boolean over;

  private ArrivingMessage(
      final UploadId id, final Arrivals arrivals, final Executor executor, final Slabs slabs) {
    this.id = id;
    this.arrivals = arrivals;
    this.executor = executor;
    this.slabs = slabs;
  }

  /**
   * A message that comes.
   *
   * @param id of one that is not longer on its way than it is at its place
   * @param arrivals say where it goes, to memory that stays until they have been told of its end
   * @param executor expands, and checks the sum
   * @param slabs has memory for what is expanded
   * @return null if nobody waits for it
   */
  static @Nullable ArrivingMessage of(
      final UploadId id, final Arrivals arrivals, final Executor executor, final Slabs slabs) {
    final ArrivingMessage message = new ArrivingMessage(id, arrivals, executor, slabs);
    return message.begin() ? message : null;
  }

  /** It may be stopped before it has a place. */
  private synchronized boolean begin() {
    final long address = arrivals.arriving(id.number(), id.place(), id.expanded(), this::stop);
    if (address != 0) {
      place.wrap(address, id.expanded());
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
    final boolean good;
    try {
      good = id.kind() == UploadId.COMPRESSED ? expand() : isWhole(id.sum());
    } catch (final RuntimeException | OutOfMemoryError e) {
      tell(String.valueOf(e.getMessage())); // There is no memory to expand it.
      return;
    }
    if (good) {
      tell(null);
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
    if (end()) {
      tell(why);
    }
  }

  /** Nobody waits for it any more, and the rest may never come: its owner's host may be gone. */
  private void stop() {
    failed("its reader has left");
  }

  private synchronized boolean end() {
    final boolean wasUnderWay = !over;
    over = true;
    return wasUnderWay;
  }

  private void tell(final @Nullable String failure) {
    arrivals.arrived(id.number(), id.place(), id.expanded(), failure);
  }
}
