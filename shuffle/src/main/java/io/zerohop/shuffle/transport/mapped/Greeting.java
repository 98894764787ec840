package io.zerohop.shuffle.transport.mapped;

import io.zerohop.device.Topology;
import java.nio.BufferUnderflowException;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import org.jspecify.annotations.Nullable;

/**
 * The message of an owner to a peer that connects. Big-endian; a text is two bytes of length and
 * UTF-8:
 *
 * <pre>
 *  0           4             8                    16                24            32
 *  | version   | lane block  | its generation     | root segment id | incarnation |
 *  | executor id | UUID of its GPU | fingerprint of its topology                  |
 * </pre>
 *
 * @param laneBlock the peer's block of lanes in the root segment; -1 if there is none left
 * @param generation of the block, which stays as it is while the peer's leases hold
 * @param rootSegment id of the root segment
 * @param incarnation the owner's life
 * @param view the owner, its GPU and what it sees of the node; the last two empty without a GPU
 */
record Greeting(
    int laneBlock, long generation, long rootSegment, long incarnation, Topology.View view) {
  private static final int VERSION = 3;
  private static final int FIXED_BYTES = 32;
  private static final int MAX_TEXT_BYTES = 200;

  byte[] encode() {
    final ByteBuffer buffer = ByteBuffer.allocate(FIXED_BYTES + 3 * (2 + MAX_TEXT_BYTES));
    buffer.putInt(VERSION).putInt(laneBlock).putLong(generation);
    buffer.putLong(rootSegment).putLong(incarnation);
    put(buffer, view.executorId());
    put(buffer, view.gpuUuid());
    put(buffer, view.fingerprint());
    final byte[] bytes = new byte[buffer.position()];
    buffer.flip().get(bytes);
    return bytes;
  }

  private static void put(final ByteBuffer to, final String text) {
    final byte[] bytes = text.getBytes(StandardCharsets.UTF_8);
    final int length = Math.min(bytes.length, MAX_TEXT_BYTES);
    to.putShort((short) length).put(bytes, 0, length);
  }

  /** Returns the greeting; absent if the bytes are not one of this version. */
  static @Nullable Greeting decode(final byte[] bytes) {
    try {
      final ByteBuffer buffer = ByteBuffer.wrap(bytes);
      if (buffer.getInt() != VERSION) {
        return null;
      }
      final int laneBlock = buffer.getInt();
      final long generation = buffer.getLong();
      final long rootSegment = buffer.getLong();
      final long incarnation = buffer.getLong();
      final Topology.View view = new Topology.View(text(buffer), text(buffer), text(buffer));
      return buffer.hasRemaining()
          ? null
          : new Greeting(laneBlock, generation, rootSegment, incarnation, view);
    } catch (final BufferUnderflowException e) {
      return null;
    }
  }

  private static String text(final ByteBuffer from) {
    final int length = from.getShort();
    if (length < 0 || length > MAX_TEXT_BYTES) {
      throw new BufferUnderflowException();
    }
    final byte[] bytes = new byte[length];
    from.get(bytes);
    return new String(bytes, StandardCharsets.UTF_8);
  }
}
