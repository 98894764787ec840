package io.zerohop.shuffle.transport.ucx.wire;

import io.zerohop.shuffle.transport.remote.wire.Wire;
import java.nio.ByteBuffer;
import java.util.Collection;

/**
 * The questions of readers that get, beside those of {@link Wire}, each ready to be sent.
 *
 * <pre>
 *  HELLO, what its answer ends with: has it RDMA?, worker address; address, size and key of a
 *         test range, and of one in GPU memory
 *  KEYS   n, n x segment id   -> n x (address, key; empty if it has none)
 *  HANDLES n, n x segment id  -> n x (bytes, fabric handle; 0 and nothing if it has none)
 *  EVENTS                     -> what its UCX has had to do since its start
 * </pre>
 */
public final class GetQuestions {
  public static final byte KEYS = Wire.FIRST_OF_CARRIERS;
  public static final byte EVENTS = KEYS + 1;
  public static final byte HANDLES = EVENTS + 1;

  private GetQuestions() {}

  /** Asks for the keys of segments. */
  public static ByteBuffer keys(final Collection<Long> segments) {
    return ofSegments(KEYS, segments);
  }

  /** Asks for the fabric handles of segments. */
  public static ByteBuffer handles(final Collection<Long> segments) {
    return ofSegments(HANDLES, segments);
  }

  private static ByteBuffer ofSegments(final byte kind, final Collection<Long> segments) {
    final ByteBuffer question =
        ByteBuffer.allocate(1 + Integer.BYTES + Long.BYTES * segments.size()).put(kind);
    question.putInt(segments.size());
    segments.forEach(question::putLong);
    return question.flip();
  }

  /** Asks how many events its UCX has handled. */
  public static ByteBuffer events() {
    return ByteBuffer.allocate(1).put(EVENTS).flip();
  }
}
