package io.zerohop.shuffle.transport.ucx.wire;

import io.zerohop.shuffle.transport.remote.wire.Wire;
import io.zerohop.shuffle.transport.ucx.memory.TestRange;
import java.nio.ByteBuffer;

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
