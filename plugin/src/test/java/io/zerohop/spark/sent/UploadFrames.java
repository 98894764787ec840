package io.zerohop.spark.sent;

import java.io.ByteArrayOutputStream;
import java.nio.ByteBuffer;
import org.apache.spark.network.shuffle.protocol.BlockTransferMessage;
import org.apache.spark.network.shuffle.protocol.UploadBlockStream;
import org.apache.spark.storage.BlockId$;
import org.apache.spark.storage.ShuffleBlockBatchId;

/**
 * Finds uploads in the bytes that one end of a connection sends, framed as Spark does where nothing
 * is encrypted: eight bytes of length, the frame, and behind that of an upload its body. For one
 * thread.
 */
final class UploadFrames {
  private static final int LENGTH_BYTES = 8;

  /** Type, request, length of the words about it. */
  private static final int FIXED_BYTES = 1 + 8 + 4;

  private static final byte UPLOAD = 10;

  private final ByteArrayOutputStream frame = new ByteArrayOutputStream();
  private long left = LENGTH_BYTES;
  private UploadId id;
  private boolean begun;
  private UploadId ended;

  /**
   * Takes bytes until an upload's body begins or ends, or all of them.
   *
   * @return behind the last one that was taken
   */
  int take(final byte[] bytes, final int from, final int end) {
    begun = false;
    ended = null;
    int at = from;
    while (at < end && !begun && ended == null) {
      final int some = (int) Math.min(left, end - at);
      if (id == null) {
        frame.write(bytes, at, some);
      }
      at += some;
      left -= some;
      if (left == 0) {
        passed();
      }
    }
    return at;
  }

  /** What has come is a length, a frame, or a body. */
  private void passed() {
    if (id != null) {
      ended = id;
      reset();
      return;
    }
    final ByteBuffer all = ByteBuffer.wrap(frame.toByteArray());
    if (all.remaining() == LENGTH_BYTES && all.getLong(0) > LENGTH_BYTES) {
      left = all.getLong(0) - LENGTH_BYTES;
    } else if (all.get(LENGTH_BYTES) == UPLOAD) {
      all.position(LENGTH_BYTES + FIXED_BYTES);
      id = id(all);
      left = all.getLong(all.limit() - Long.BYTES);
      begun = true;
    } else {
      reset();
    }
  }

  private static UploadId id(final ByteBuffer words) {
    final UploadBlockStream upload =
        (UploadBlockStream) BlockTransferMessage.Decoder.fromByteBuffer(words);
    return UploadId.decode((ShuffleBlockBatchId) BlockId$.MODULE$.apply(upload.blockId));
  }

  private void reset() {
    frame.reset();
    id = null;
    left = LENGTH_BYTES;
  }

  /** The upload whose body begins behind what was taken; null if none does. */
  UploadId begun() {
    return begun ? id : null;
  }

  /** The upload whose body has just ended; null if none has. */
  UploadId ended() {
    return ended;
  }
}
