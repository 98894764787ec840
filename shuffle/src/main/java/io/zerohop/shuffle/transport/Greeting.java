package io.zerohop.shuffle.transport;

import java.nio.BufferUnderflowException;
import java.nio.ByteBuffer;

/**
 * What an owner tells a peer that connects. Big-endian:
 *
 * <pre>
 *  0           4             8                    16                24
 *  | version   | lane block  | root segment id    | incarnation     |
 * </pre>
 *
 * @param laneBlock the peer's block of lanes in the root segment; -1 if there is none left
 * @param rootSegment id of the root segment
 * @param incarnation the owner's life
 */
record Greeting(int laneBlock, long rootSegment, long incarnation) {
  private static final int VERSION = 1;
  private static final int BYTES = 24;

  byte[] encode() {
    return ByteBuffer.allocate(BYTES)
        .putInt(VERSION)
        .putInt(laneBlock)
        .putLong(rootSegment)
        .putLong(incarnation)
        .array();
  }

  /** Null if the bytes are not a greeting of this version. */
  static Greeting decode(final byte[] bytes) {
    try {
      final ByteBuffer buffer = ByteBuffer.wrap(bytes);
      if (bytes.length != BYTES || buffer.getInt() != VERSION) {
        return null;
      }
      return new Greeting(buffer.getInt(), buffer.getLong(), buffer.getLong());
    } catch (final BufferUnderflowException e) {
      return null;
    }
  }
}
