package io.zerohop.shuffle.transport.remote;

import io.zerohop.shuffle.block.Block;
import java.nio.BufferUnderflowException;
import java.nio.ByteBuffer;
import java.util.List;

/**
 * The questions that readers ask owners over a {@link
 * io.zerohop.shuffle.transport.ControlChannel.ControlLink}, big-endian: one byte that names the
 * question, and what it needs. Texts and keys are four bytes of length and the bytes. Both ends are
 * of one application and so of one version; the version is checked even so, since a rolling change
 * of jars would else be read wrongly.
 *
 * <pre>
 *  HELLO  version, where to send to, would it         -> version, incarnation, and what the
 *         get GPU memory?                                carrier has to say besides
 *  PING                                               -> nothing
 *  OPEN   shuffle, n, n x (map id, partition)         -> lease, extents
 *  SEND   lease, transfer                             -> bytes that will be sent; the lease ends
 *                                                        when they were
 *  CLOSE  lease                                       -> whether it was still held
 * </pre>
 *
 * <p>Numbers from {@link #FIRST_OF_CARRIERS} on are the carriers' own.
 */
public final class Wire {
  public static final int VERSION = 6;
  public static final byte HELLO = 1;
  public static final byte OPEN = 2;
  public static final byte SEND = 4;
  public static final byte CLOSE = 5;
  public static final byte PING = 7;
  public static final byte FIRST_OF_CARRIERS = 8;

  /** What an answer begins with. */
  public static final byte GRANTED = 0;

  /** What it begins with if the rest is a sentence that says why not. */
  public static final byte REFUSED = 1;

  public static final java.nio.charset.Charset TEXT = java.nio.charset.StandardCharsets.UTF_8;

  private static final int MAX_BYTES = 1 << 16;

  private Wire() {}

  /** An answer that grants what was asked for, with room for so many bytes. */
  public static ByteBuffer granted(final int bytes) {
    return ByteBuffer.allocate(1 + bytes).put(GRANTED);
  }

  /** An answer that says why not. */
  public static ByteBuffer refusal(final Throwable why) {
    final byte[] words = String.valueOf(why.getMessage()).getBytes(TEXT);
    return ByteBuffer.allocate(1 + words.length).put(REFUSED).put(words).flip();
  }

  public static void put(final ByteBuffer to, final byte[] bytes) {
    to.putInt(bytes.length).put(bytes);
  }

  /** Reads what {@link #put} wrote. */
  public static byte[] bytes(final ByteBuffer from) {
    final int length = from.getInt();
    if (length < 0 || length > MAX_BYTES) {
      throw new BufferUnderflowException();
    }
    final byte[] bytes = new byte[length];
    from.get(bytes);
    return bytes;
  }

  /** The requests of {@link Wire} in the reader's encoding, each ready to be sent. */
  public static final class Questions {
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
}
