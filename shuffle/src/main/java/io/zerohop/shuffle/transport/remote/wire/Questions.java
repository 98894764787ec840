package io.zerohop.shuffle.transport.remote.wire;

import io.zerohop.shuffle.block.Block;
import java.nio.ByteBuffer;
import java.util.List;

/** The requests of {@link Wire} in the reader's encoding, each ready to be sent. */
public final class Questions {
  private static final int BLOCK_BYTES = Long.BYTES + Integer.BYTES;

  private Questions() {}

  /**
   * Introduces the reader.
   *
   * @param address where bytes are sent to it; empty if none are
   * @param gpu whether it would get GPU memory
   */
  public static ByteBuffer hello(final byte[] address, final boolean gpu) {
    final ByteBuffer question = begin(Wire.HELLO, 2 * Integer.BYTES + address.length + 1);
    question.putInt(Wire.VERSION);
    Wire.put(question, address);
    return question.put((byte) (gpu ? 1 : 0)).flip();
  }

  /** Asks for a sign of life. */
  public static ByteBuffer ping() {
    return begin(Wire.PING, 0).flip();
  }

  /**
   * Asks for a lease on blocks, and where they lie.
   *
   * @param blocks of one shuffle, at least one
   */
  public static ByteBuffer open(final List<Block> blocks) {
    final ByteBuffer question = begin(Wire.OPEN, 2 * Integer.BYTES + BLOCK_BYTES * blocks.size());
    question.putInt(blocks.get(0).shuffleId()).putInt(blocks.size());
    for (final Block block : blocks) {
      question.putLong(block.mapId()).putInt(block.partition());
    }
    return question.flip();
  }

  /** Returns the request to send blocks. */
  public static ByteBuffer send(final long lease, final long transfer) {
    return begin(Wire.SEND, 2 * Long.BYTES).putLong(lease).putLong(transfer).flip();
  }

  /** Ends a lease, and asks whether it was still held. */
  public static ByteBuffer close(final long lease) {
    return begin(Wire.CLOSE, Long.BYTES).putLong(lease).flip();
  }

  private static ByteBuffer begin(final byte question, final int bytes) {
    return ByteBuffer.allocate(1 + bytes).put(question);
  }
}
