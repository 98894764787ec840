package io.zerohop.spark.blocktransfer.sent;

import java.nio.ByteBuffer;
import java.util.concurrent.atomic.LongAdder;
import org.apache.spark.network.client.StreamCallbackWithID;
import org.apache.spark.storage.ShuffleBlockBatchId;
import org.jspecify.annotations.Nullable;

/**
 * Receives the uploads that are Zerohop's. All of it runs on event loops of Spark's, so it only
 * copies bytes to where they belong and hands on. What nobody here has asked for is drained and
 * counted: an exception would close a connection that others use. Thread safe.
 */
public final class Uploads {
  private final LongAdder strangers = new LongAdder();
  private volatile @Nullable Receiver receiver;

  /** Receives messages and words. Called by event loops, which must not be blocked. */
  interface Receiver {

    /** A message comes; null if nobody waits for it. */
    @Nullable Arriving message(UploadId id);

    /** A word comes; null if there is no room for it, or nobody waits for it. */
    @Nullable Arriving word(UploadId id);
  }

  /** One upload on its way. For one thread. */
  interface Arriving {

    /** The next bytes, no more altogether than the upload's id says. */
    void bytes(ByteBuffer piece);

    /** It has come as a whole. */
    Reply complete();

    /** It will not; called once, and not after {@link #complete}. */
    void failed(String why);
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

  /** From now on uploads are taken by this one, or by nobody. */
  void receiver(final @Nullable Receiver taker) {
    receiver = taker;
  }

  /** Uploads, since the start, that nobody had asked for. */
  long strangers() {
    return strangers.sum();
  }

  /** Takes an upload; never fails. */
  public StreamCallbackWithID take(final ShuffleBlockBatchId blockId) {
    final UploadId id = UploadId.decode(blockId);
    final Receiver taker = receiver;
    final Arriving arriving =
        taker == null
            ? null
            : switch (id.kind()) {
              case UploadId.MESSAGE, UploadId.COMPRESSED -> taker.message(id);
              case UploadId.WORD -> taker.word(id);
              default -> null;
            };
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
}
