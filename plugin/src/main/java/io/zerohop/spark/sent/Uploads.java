package io.zerohop.spark.sent;

import io.zerohop.device.Crc32c;
import io.zerohop.device.posix.Memory;
import io.zerohop.shuffle.transport.remote.Carrier.Arrivals;
import io.zerohop.shuffle.transport.remote.Slabs;
import io.zerohop.shuffle.transport.remote.Slabs.Slab;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.util.concurrent.Executor;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.atomic.LongAdder;
import java.util.function.Consumer;
import java.util.function.Function;
import org.agrona.concurrent.UnsafeBuffer;
import org.apache.spark.network.client.StreamCallbackWithID;
import org.apache.spark.storage.ShuffleBlockBatchId;
import org.jspecify.annotations.Nullable;

/**
 * Receives the uploads that are Zerohop's: messages and words. Event loops of Spark's only copy
 * bytes to where they belong and hand on. What nobody here has asked for is drained and counted: an
 * exception would close a connection that others use. Thread safe.
 */
public final class Uploads {
  private final LongAdder strangers = new LongAdder();
  private volatile @Nullable Function<UploadId, @Nullable Arriving> receiver;

  /**
   * One upload on its way, handed over once it is there. Thread safe: an event loop brings it, and
   * any thread may stop it.
   */
  abstract static class Arriving {
    private final Executor executor;
    private int at;

    /** Whether no more of it is taken. */
    private boolean over;

    /**
     * @param executor reads it, which an event loop must not do
     */
    Arriving(final Executor executor) {
      this.executor = executor;
    }

    /** Keeps bytes that have come; called with the lock held, and not once it is over. */
    abstract void put(int at, ByteBuffer piece);

    /** Reads it, now that it is there as a whole. The executor calls this. */
    abstract void read();

    /** Ends it without reading it. */
    abstract void dropped(String why);

    /** The next bytes, no more altogether than the upload's id says. */
    final synchronized void bytes(final ByteBuffer piece) {
      if (!over) {
        final int length = piece.remaining();
        put(at, piece);
        at += length;
      }
    }

    /** It has come as a whole. */
    final Reply complete() {
      if (!end()) {
        return Reply.DROPPED;
      }
      try {
        executor.execute(this::read);
        return Reply.TAKEN;
      } catch (final RejectedExecutionException e) {
        dropped("this executor is shutting down");
        return Reply.DROPPED;
      }
    }

    /** It will not come, or nobody waits for it any more. Does nothing once it is over. */
    final void failed(final String why) {
      if (end()) {
        dropped(why);
      }
    }

    final synchronized boolean isOver() {
      return over;
    }

    private synchronized boolean end() {
      final boolean wasUnderWay = !over;
      over = true;
      return wasUnderWay;
    }
  }

  /** The response to the sender. */
  enum Reply {
    /** Not ours to say: the other end is no executor of this version. */
    UNKNOWN,
    TAKEN,
    /** Nobody wants it, or there is no room for it now. */
    DROPPED;

    private static final Reply[] ALL = values();

    static Reply of(final ByteBuffer response) {
      final int code = response.remaining() == 1 ? response.get(response.position()) : 0;
      return code > 0 && code < ALL.length ? ALL[code] : UNKNOWN;
    }

    ByteBuffer encode() {
      return ByteBuffer.wrap(new byte[] {(byte) ordinal()});
    }
  }

  /**
   * From now on uploads are taken by this one, or by nobody.
   *
   * @param taker called by event loops, which must not be blocked; returns null if nobody waits for
   *     an upload, or there is no room for it
   */
  void receiver(final @Nullable Function<UploadId, @Nullable Arriving> taker) {
    receiver = taker;
  }

  /** Uploads, since the start, that nobody had asked for. */
  long strangers() {
    return strangers.sum();
  }

  /** Takes an upload; never fails. */
  public StreamCallbackWithID take(final ShuffleBlockBatchId blockId) {
    final UploadId id = UploadId.decode(blockId);
    final Function<UploadId, @Nullable Arriving> taker = receiver;
    final Arriving arriving = taker == null ? null : taker.apply(id);
    if (arriving == null) {
      strangers.increment();
    }
    return new Callback(blockId.name(), id.length(), arriving);
  }

  /** Ensures that an upload is as long as its id says. */
  private static final class Callback implements StreamCallbackWithID {
    private final String name;
    private long left;

    /** Absent if it is drained, or over. */
    private @Nullable Arriving arriving;

    private Reply reply = Reply.DROPPED;

    /**
     * @param arriving absent if it is drained
     */
    Callback(final String name, final long length, final @Nullable Arriving arriving) {
      this.name = name;
      this.left = length;
      this.arriving = arriving;
    }

    @Override
    public String getID() {
      return name;
    }

    @Override
    public void onData(final String streamId, final ByteBuffer piece) {
      left -= piece.remaining();
      if (arriving != null && left >= 0) {
        arriving.bytes(piece);
      } else {
        fail("it is longer than it says");
      }
      piece.position(piece.limit());
    }

    @Override
    public void onComplete(final String streamId) {
      if (left > 0) {
        fail("it is shorter than it says");
      }
      if (arriving != null) {
        reply = arriving.complete();
        arriving = null;
      }
    }

    @Override
    public void onFailure(final String streamId, final Throwable cause) {
      fail(String.valueOf(cause.getMessage()));
    }

    private void fail(final String why) {
      if (arriving != null) {
        arriving.failed(why);
        arriving = null;
      }
    }

    @Override
    public ByteBuffer getCompletionResponse() {
      return reply.encode();
    }
  }

  /**
   * A message that is being received into its place in memory. It is expanded if compressed, and
   * its checksum is verified at the end.
   */
  static final class ArrivingMessage extends Arriving {
    private final UploadId id;
    private final Arrivals arrivals;
    private final Slabs slabs;

    /** Nowhere until {@link #begin}. */
    private final UnsafeBuffer place = new UnsafeBuffer(0, 0);

    private ArrivingMessage(
        final UploadId id, final Arrivals arrivals, final Executor executor, final Slabs slabs) {
      super(executor);
      this.id = id;
      this.arrivals = arrivals;
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

    /**
     * It may be stopped before it has a place: nobody waits for it any more, and the rest may never
     * come, if its owner's host is gone.
     */
    private synchronized boolean begin() {
      final long address =
          arrivals.arriving(
              id.number(), id.place(), id.expanded(), () -> failed("its reader has left"));
      if (address != 0) {
        place.wrap(address, id.expanded());
      }
      return address != 0;
    }

    /** The only copy, of the few bytes that the network has just brought. */
    @Override
    void put(final int at, final ByteBuffer piece) {
      place.putBytes(at, piece, piece.remaining());
    }

    @Override
    void read() {
      final boolean good;
      try {
        good = id.kind() == UploadId.COMPRESSED ? expand() : isWhole(id.sum());
      } catch (final RuntimeException | OutOfMemoryError e) {
        dropped(String.valueOf(e.getMessage())); // There is no memory to expand it.
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
        return codec.expand(body, Memory.view(place.addressOffset(), id.expanded()))
                == id.expanded()
            && isWhole(sum);
      } finally {
        copy.release();
      }
    }

    @Override
    void dropped(final String why) {
      arrivals.arrived(id.number(), id.place(), id.expanded(), why);
    }
  }

  /**
   * A word on its way. The body of a request or a farewell begins with the sender: two bytes of
   * length and the executor's id. Each body ends with the CRC32C of the rest.
   */
  static final class ArrivingWord extends Arriving {
    private static final int SUM_BYTES = 4;

    private final Consumer<@Nullable ByteBuffer> taken;
    private final Runnable end;

    /** Absent once it was read or dropped. */
    private byte @Nullable [] body;

    /**
     * @param taken gets what it says, or null if it was damaged
     * @param end run once when it is not needed any more
     */
    ArrivingWord(
        final int length,
        final Executor executor,
        final Consumer<@Nullable ByteBuffer> taken,
        final Runnable end) {
      super(executor);
      this.body = new byte[length];
      this.taken = taken;
      this.end = end;
    }

    /** Returns the body of a word that names no sender. */
    static ByteBuffer body(final ByteBuffer words) {
      return summed(ByteBuffer.allocate(words.remaining() + SUM_BYTES).put(words.duplicate()));
    }

    /** Returns the body of a word that names its sender. */
    static ByteBuffer body(final String sender, final ByteBuffer words) {
      final byte[] name = sender.getBytes(StandardCharsets.UTF_8);
      final ByteBuffer body =
          ByteBuffer.allocate(Short.BYTES + name.length + words.remaining() + SUM_BYTES);
      return summed(body.putShort((short) name.length).put(name).put(words.duplicate()));
    }

    private static ByteBuffer summed(final ByteBuffer body) {
      return body.putInt(Crc32c.of(body.duplicate().flip())).flip();
    }

    /** Reads who says it; null if that makes no sense. */
    static @Nullable String sender(final ByteBuffer words) {
      if (words.remaining() < Short.BYTES) {
        return null;
      }
      final int length = words.getShort();
      if (length <= 0 || length > words.remaining()) {
        return null;
      }
      final byte[] name = new byte[length];
      words.get(name);
      return new String(name, StandardCharsets.UTF_8);
    }

    @Override
    void put(final int at, final ByteBuffer piece) {
      final byte[] to = body;
      if (to != null) {
        piece.get(to, at, piece.remaining());
      }
    }

    @Override
    void read() {
      final byte[] whole = body;
      body = null;
      try {
        taken.accept(whole == null ? null : checked(whole));
      } finally {
        end.run();
      }
    }

    /** Returns a body without its checksum; null if that is wrong. */
    private static @Nullable ByteBuffer checked(final byte[] body) {
      final int length = body.length - SUM_BYTES;
      final boolean isWhole =
          length >= 0
              && ByteBuffer.wrap(body).getInt(length)
                  == Crc32c.of(ByteBuffer.wrap(body, 0, length));
      return isWhole ? ByteBuffer.wrap(body, 0, length) : null;
    }

    @Override
    void dropped(final String why) {
      body = null;
      end.run();
    }
  }
}
