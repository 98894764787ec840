package io.zerohop.shuffle.transport.ucx.wire;

import io.zerohop.device.SegmentHandle;
import java.nio.ByteBuffer;

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
   * @param handle null if there is none
   */
  public static FabricTarget of(final SegmentHandle handle) {
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
