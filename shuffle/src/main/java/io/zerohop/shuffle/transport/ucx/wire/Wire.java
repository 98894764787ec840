package io.zerohop.shuffle.transport.ucx.wire;

import java.nio.BufferUnderflowException;
import java.nio.ByteBuffer;

/**
 * The questions that readers ask owners over a {@link io.zerohop.shuffle.transport.ControlChannel},
 * big-endian: one byte that names the question, and what it needs. Texts and keys are four bytes of
 * length and the bytes. Both ends are of one application and so of one version; the version is
 * checked even so, since a rolling change of jars would else be read wrongly.
 *
 * <pre>
 *  HELLO  version, reader's worker address, would it  -> version, incarnation, has it RDMA?,
 *         get GPU memory?                                worker address; address, size and key
 *                                                        of a test range, and of one in GPU memory
 *  PING                                               -> nothing
 *  OPEN   would it get GPU memory?,                   -> lease, by message only?, extents
 *         shuffle, n, n x (map id, partition)
 *  KEYS   n, n x segment id                           -> n x (address, key; empty if it has none)
 *  SEND   lease, transfer, not what is in GPU memory? -> bytes that will be sent; if it is all,
 *                                                        the lease ends when they were
 *  CLOSE  lease                                       -> whether it was still held
 *  TEST   transfer, most bytes                        -> bytes of the test range, which are sent
 *  HANDLES n, n x segment id                          -> n x (bytes, fabric handle; 0 and nothing
 *                                                        if it has none)
 *  EVENTS                                             -> what its UCX has had to do since its start
 * </pre>
 */
public final class Wire {
  public static final int VERSION = 3;
  public static final byte HELLO = 1;
  public static final byte OPEN = 2;
  public static final byte KEYS = 3;
  public static final byte SEND = 4;
  public static final byte CLOSE = 5;
  public static final byte TEST = 6;
  public static final byte PING = 7;
  public static final byte EVENTS = 8;
  public static final byte HANDLES = 9;

  /** What an answer begins with. */
  public static final byte GRANTED = 0;

  /** What it begins with if the rest is a sentence that says why not. */
  public static final byte REFUSED = 1;

  public static final java.nio.charset.Charset TEXT = java.nio.charset.StandardCharsets.UTF_8;

  private static final int MOST_BYTES = 1 << 16;

  private Wire() {}

  public static void put(final ByteBuffer to, final byte[] bytes) {
    to.putInt(bytes.length).put(bytes);
  }

  /** Reads what {@link #put} wrote. */
  public static byte[] bytes(final ByteBuffer from) {
    final int length = from.getInt();
    if (length < 0 || length > MOST_BYTES) {
      throw new BufferUnderflowException();
    }
    final byte[] bytes = new byte[length];
    from.get(bytes);
    return bytes;
  }
}
