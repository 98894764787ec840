package io.zerohop.shuffle.transport.remote.wire;

import io.zerohop.shuffle.block.Block;
import java.nio.ByteBuffer;
import java.util.List;

/** The questions of {@link Wire} as a reader writes them, each ready to be sent. */
public final class Questions {
  private static final int BLOCK_BYTES = Long.BYTES + Integer.BYTES;

  private Questions() {}

  /**
   * Introduces the reader.
   *
   * @param address by which what carries bytes reaches it
   * @param gpu whether it would get GPU memory
   */
  public static ByteBuffer hello(final byte[] address, final boolean gpu) {
    final ByteBuffer question = begin(Wire.HELLO, 2 * Integer.BYTES + address.length + 1);
    question.putInt(Wire.VERSION);
    Wire.put(question, address);
    return question.put(flag(gpu)).flip();
  }

  /** Asks for a sign of life. */
  public static ByteBuffer ping() {
    return begin(Wire.PING, 0).flip();
  }

  /**
   * Asks for a lease on blocks, and where they lie.
   *
   * @param blocks of one shuffle, at least one
   * @param gpu whether the reader would get GPU memory
   */
  public static ByteBuffer open(final List<Block> blocks, final boolean gpu) {
    final ByteBuffer question =
        begin(Wire.OPEN, 1 + 2 * Integer.BYTES + BLOCK_BYTES * blocks.size());
    question.put(flag(gpu)).putInt(blocks.get(0).shuffleId()).putInt(blocks.size());
    for (final Block block : blocks) {
      question.putLong(block.mapId()).putInt(block.partition());
    }
    return question.flip();
  }

  /**
   * Asks for blocks by messages.
   *
   * @param hostOnly whether what lies in GPU memory is not to be sent
   */
  public static ByteBuffer send(final long lease, final long transfer, final boolean hostOnly) {
    final ByteBuffer question = begin(Wire.SEND, 2 * Long.BYTES + 1);
    return question.putLong(lease).putLong(transfer).put(flag(hostOnly)).flip();
  }

  /** Ends a lease, and asks whether it was still held. */
  public static ByteBuffer close(final long lease) {
    return begin(Wire.CLOSE, Long.BYTES).putLong(lease).flip();
  }

  private static ByteBuffer begin(final byte question, final int bytes) {
    return ByteBuffer.allocate(1 + bytes).put(question);
  }

  private static byte flag(final boolean value) {
    return (byte) (value ? 1 : 0);
  }
}
