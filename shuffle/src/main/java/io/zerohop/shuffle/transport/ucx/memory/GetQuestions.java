package io.zerohop.shuffle.transport.ucx.memory;

import io.zerohop.device.SegmentHandle;
import io.zerohop.shuffle.transport.remote.Wire;
import java.nio.ByteBuffer;
import java.util.Collection;
import org.jspecify.annotations.Nullable;

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

  /**
   * The handle by which other nodes of an NVLink fabric map a segment of GPU memory.
   *
   * @param bytes of the segment; 0 if it cannot be
   * @param handle opaque, 64 bytes; none if it cannot be
   */
  public record FabricTarget(long bytes, byte[] handle) {
    private static final int HANDLE_BYTES = 64;
    private static final FabricTarget NONE = new FabricTarget(0, new byte[0]);

    /**
     * What an owner answers.
     *
     * @param handle absent if there is none
     */
    public static FabricTarget of(final @Nullable SegmentHandle handle) {
      return handle == null ? NONE : new FabricTarget(handle.bytes(), handle.opaque());
    }

    /** Bytes of {@link #write}. */
    public int encodedBytes() {
      return Long.BYTES + handle.length;
    }

    public void write(final ByteBuffer to) {
      to.putLong(bytes).put(handle);
    }

    /**
     * Reads what {@link #write} wrote.
     *
     * @throws java.nio.BufferUnderflowException if it is cut off
     */
    public static FabricTarget read(final ByteBuffer from) {
      final long bytes = from.getLong();
      if (bytes == 0) {
        return NONE;
      }
      final byte[] handle = new byte[HANDLE_BYTES];
      from.get(handle);
      return new FabricTarget(bytes, handle);
    }
  }

  /**
   * Memory that an owner lets others read to learn whether and how fast they can.
   *
   * @param bytes 0 if there is none
   */
  public record TestTarget(long address, long bytes, byte[] key) {
    public static final TestTarget NONE = new TestTarget(0, 0, new byte[0]);

    public static TestTarget of(final TestRange range) {
      final byte[] key = range.registered().key();
      return new TestTarget(range.address(), TestRange.BYTES, key);
    }

    /** Bytes of {@link #write}. */
    public int encodedBytes() {
      return 8 + 8 + 4 + key.length;
    }

    public void write(final ByteBuffer to) {
      to.putLong(address).putLong(bytes);
      Wire.put(to, key);
    }

    /** Reads what {@link #write} wrote. */
    public static TestTarget read(final ByteBuffer from) {
      return new TestTarget(from.getLong(), from.getLong(), Wire.bytes(from));
    }
  }
}
