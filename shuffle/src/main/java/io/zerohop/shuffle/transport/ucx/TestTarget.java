package io.zerohop.shuffle.transport.ucx;

import java.nio.ByteBuffer;

/**
 * Memory that an owner lets others read to learn how fast they can.
 *
 * @param bytes 0 if there is none
 */
record TestTarget(long address, long bytes, byte[] key) {
  static final TestTarget NONE = new TestTarget(0, 0, new byte[0]);

  static TestTarget of(final TestRange range) {
    return new TestTarget(range.address(), range.bytes(), range.registered().key());
  }

  /** Bytes of {@link #write}. */
  int encodedBytes() {
    return 8 + 8 + 4 + key.length;
  }

  void write(final ByteBuffer to) {
    to.putLong(address).putLong(bytes);
    Wire.put(to, key);
  }

  /** Reads what {@link #write} wrote. */
  static TestTarget read(final ByteBuffer from) {
    return new TestTarget(from.getLong(), from.getLong(), Wire.bytes(from));
  }
}
