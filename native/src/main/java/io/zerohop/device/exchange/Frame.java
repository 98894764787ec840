package io.zerohop.device.exchange;

import io.zerohop.device.Message;
import io.zerohop.device.SegmentHandle;
import io.zerohop.device.exchange.ExchangeException.Reason;
import io.zerohop.device.posix.Descriptor;
import io.zerohop.device.posix.FileStatus;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import org.jspecify.annotations.Nullable;

/**
 * One message of the exchange. All numbers are big endian.
 *
 * <pre>
 *  0        2         3      4                8
 *  | magic  | version | type | payload length | payload ...
 *
 *  HELLO      client nonce (32) | process (32) | length (1) | client's name | length (1) | server's
 *             name
 *  CHALLENGE  server nonce (32) | process (32)
 *  ANSWER     client's proof (32)
 *  WELCOME    server's proof (32) | greeting (0 to 1024)
 *  FETCH      segment id (8) | seal (32)
 *  SEGMENT    segment id (8) | size in bytes (8) | kind (1) | device (8) | inode (8)
 *             | opaque handle (0 or 64) | seal (32)
 *             a POSIX_FD travels with the first byte of the frame; device and inode are its own
 *  GONE       segment id (8) | seal (32)
 *  REFUSED    reason (1)
 *  WITHHELD   segment id (8) | seal (32)
 *  BORROW     size in bytes (8) | seal (32)
 *  RETURN     segment id (8) | seal (32)
 *  KEEP       segment id (8) | seal (32)
 *  KEPT       segment id (8) | seal (32)
 *  UNKEPT     segment id (8) | seal (32)
 * </pre>
 *
 * A process is a {@link ProcessIdentity}. A seal is made by {@link Proofs.Seals}.
 */
record Frame(Type type, byte[] payload) {
  static final int HEADER_BYTES = 8;
  static final short MAGIC = 0x5A48;
  static final byte VERSION = 5;
  static final int NONCE_BYTES = 32;
  static final int PROOF_BYTES = 32;
  static final int SEAL_BYTES = 32;
  static final int OPAQUE_BYTES = 64;
  static final int MAX_GREETING_BYTES = 1024;
  static final int MAX_NAME_BYTES = 64;
  static final int MAX_PAYLOAD_BYTES = PROOF_BYTES + MAX_GREETING_BYTES;
  static final int MAX_FRAME_BYTES = HEADER_BYTES + MAX_PAYLOAD_BYTES;

  private static final int SEGMENT_FIXED_BYTES = 33;

  /** The messages and how long their payloads may be. The codes are fixed. */
  enum Type {
    HELLO(
        1,
        NONCE_BYTES + ProcessIdentity.BYTES + 4,
        NONCE_BYTES + ProcessIdentity.BYTES + 2 + 2 * MAX_NAME_BYTES),
    CHALLENGE(2, NONCE_BYTES + ProcessIdentity.BYTES, NONCE_BYTES + ProcessIdentity.BYTES),
    ANSWER(3, PROOF_BYTES, PROOF_BYTES),
    WELCOME(4, PROOF_BYTES, PROOF_BYTES + MAX_GREETING_BYTES),
    FETCH(5, 8 + SEAL_BYTES, 8 + SEAL_BYTES),
    SEGMENT(6, SEGMENT_FIXED_BYTES + SEAL_BYTES, SEGMENT_FIXED_BYTES + OPAQUE_BYTES + SEAL_BYTES),
    GONE(7, 8 + SEAL_BYTES, 8 + SEAL_BYTES),
    REFUSED(8, 1, 1),
    WITHHELD(9, 8 + SEAL_BYTES, 8 + SEAL_BYTES),
    BORROW(10, 8 + SEAL_BYTES, 8 + SEAL_BYTES),
    RETURN(11, 8 + SEAL_BYTES, 8 + SEAL_BYTES),
    KEEP(12, 8 + SEAL_BYTES, 8 + SEAL_BYTES),
    KEPT(13, 8 + SEAL_BYTES, 8 + SEAL_BYTES),
    UNKEPT(14, 8 + SEAL_BYTES, 8 + SEAL_BYTES);

    private static final Type[] VALUES = values();

    private final int code;
    final int minPayload;
    final int maxPayload;

    Type(final int code, final int minPayload, final int maxPayload) {
      this.code = code;
      this.minPayload = minPayload;
      this.maxPayload = maxPayload;
    }

    static Type of(final int code) {
      if (code < 1 || code > VALUES.length) {
        throw new ExchangeException(Reason.PROTOCOL, "unknown type of frame");
      }
      return VALUES[code - 1];
    }
  }

  /** The content of a HELLO. */
  record Hello(byte[] nonce, ProcessIdentity process, String client, String server) {
    /** Says hello for this process. */
    Hello(final byte[] nonce, final String client, final String server) {
      this(nonce, ProcessIdentity.self(), client, server);
    }
  }

  /**
   * The content of a SEGMENT.
   *
   * @param device of the descriptor that travels with it; 0 if there is none
   * @param inode of the descriptor, as its owner saw it
   */
  record SegmentInfo(
      long id, long bytes, SegmentHandle.Kind kind, long device, long inode, byte[] opaque) {}

  static Frame hello(final byte[] nonce, final String client, final String server) {
    return hello(new Hello(nonce, client, server));
  }

  static Frame hello(final Hello hello) {
    final byte[] clientBytes = hello.client().getBytes(StandardCharsets.US_ASCII);
    final byte[] serverBytes = hello.server().getBytes(StandardCharsets.US_ASCII);
    final int names = 2 + clientBytes.length + serverBytes.length;
    final ByteBuffer payload = ByteBuffer.allocate(NONCE_BYTES + ProcessIdentity.BYTES + names);
    payload.put(hello.nonce());
    hello.process().put(payload);
    payload.put((byte) clientBytes.length).put(clientBytes);
    payload.put((byte) serverBytes.length).put(serverBytes);
    return new Frame(Type.HELLO, payload.array());
  }

  static Frame challenge(final byte[] nonce, final ProcessIdentity process) {
    final ByteBuffer payload = ByteBuffer.allocate(NONCE_BYTES + ProcessIdentity.BYTES);
    process.put(payload.put(nonce));
    return new Frame(Type.CHALLENGE, payload.array());
  }

  static Frame welcome(final byte[] proof, final byte[] greeting) {
    final ByteBuffer payload = ByteBuffer.allocate(proof.length + greeting.length);
    return new Frame(Type.WELCOME, payload.put(proof).put(greeting).array());
  }

  /** A BORROW of so many bytes, without its seal. */
  static Frame borrow(final long bytes) {
    return ofId(Type.BORROW, bytes);
  }

  /** A frame about one segment, without its seal, as below. */
  static Frame ofId(final Type type, final long segmentId) {
    return new Frame(type, ByteBuffer.allocate(8).putLong(segmentId).array());
  }

  /** A SEGMENT that names the descriptor of the handle, if it has one, without its seal. */
  static Frame segment(final long segmentId, final SegmentHandle handle) {
    if (handle.kind() != SegmentHandle.Kind.POSIX_FD) {
      return segment(segmentId, handle, 0, 0);
    }
    final FileStatus file = Descriptor.status(handle.fd());
    return segment(segmentId, handle, file.device(), file.inode());
  }

  static Frame segment(
      final long segmentId, final SegmentHandle handle, final long device, final long inode) {
    final byte[] opaque = handle.opaque();
    final ByteBuffer payload = ByteBuffer.allocate(SEGMENT_FIXED_BYTES + opaque.length);
    payload.putLong(segmentId).putLong(handle.bytes()).put(handle.kind().code());
    payload.putLong(device).putLong(inode).put(opaque);
    return new Frame(Type.SEGMENT, payload.array());
  }

  static Frame refused(final Reason reason) {
    return new Frame(Type.REFUSED, new byte[] {(byte) reason.ordinal()});
  }

  /** The frame as it is sent. */
  byte[] encode() {
    final ByteBuffer bytes = ByteBuffer.allocate(HEADER_BYTES + payload.length);
    bytes.putShort(MAGIC).put(VERSION).put((byte) type.code).putInt(payload.length);
    return bytes.put(payload).array();
  }

  Hello asHello() {
    final ByteBuffer in = ByteBuffer.wrap(payload);
    final byte[] nonce = new byte[NONCE_BYTES];
    in.get(nonce);
    final ProcessIdentity process = ProcessIdentity.get(in);
    final String client = name(in);
    final String server = name(in);
    if (in.hasRemaining()) {
      throw new ExchangeException(Reason.PROTOCOL, "bytes behind the names of a HELLO");
    }
    return new Hello(nonce, process, client, server);
  }

  /** The process that a CHALLENGE names. */
  ProcessIdentity challenger() {
    return ProcessIdentity.get(ByteBuffer.wrap(payload).position(NONCE_BYTES));
  }

  private static String name(final ByteBuffer in) {
    final int length = in.hasRemaining() ? in.get() & 0xFF : 0;
    if (length == 0 || length > in.remaining()) {
      throw new ExchangeException(Reason.PROTOCOL, "the names of a HELLO are cut off");
    }
    final byte[] name = new byte[length];
    in.get(name);
    final String text = new String(name, StandardCharsets.ISO_8859_1);
    if (!SocketFolder.isName(text)) {
      throw new ExchangeException(Reason.PROTOCOL, "a name in a HELLO has other characters");
    }
    return text;
  }

  long asId() {
    return ByteBuffer.wrap(payload).getLong();
  }

  /** The size that a BORROW without its seal asks for. */
  long asSize() {
    final long bytes = asId();
    if (bytes <= 0) {
      throw new ExchangeException(Reason.PROTOCOL, "a BORROW of no bytes");
    }
    return bytes;
  }

  /** Reads a SEGMENT without its seal. */
  SegmentInfo asSegment() {
    final ByteBuffer in = ByteBuffer.wrap(payload);
    final long id = in.getLong();
    final long bytes = in.getLong();
    final byte code = in.get();
    final long device = in.getLong();
    final long inode = in.getLong();
    final byte[] opaque = new byte[in.remaining()];
    in.get(opaque);
    for (final SegmentHandle.Kind kind : SegmentHandle.Kind.values()) {
      final int expected = kind == SegmentHandle.Kind.POSIX_FD ? 0 : OPAQUE_BYTES;
      if (kind.code() == code && opaque.length == expected && bytes > 0) {
        return new SegmentInfo(id, bytes, kind, device, inode, opaque);
      }
    }
    throw new ExchangeException(Reason.PROTOCOL, "a SEGMENT of unknown kind or wrong size");
  }

  Reason asReason() {
    final int ordinal = payload[0] & 0xFF;
    final Reason[] reasons = Reason.values();
    return ordinal < reasons.length ? reasons[ordinal] : Reason.PROTOCOL;
  }

  /**
   * Cuts a stream of bytes into frames. Memory is bounded by one frame of the largest size; a
   * header is checked before a byte of its payload is waited for. Not thread safe.
   */
  static final class FrameDecoder {
    private final ByteBuffer buffer = ByteBuffer.allocate(2 * Frame.MAX_FRAME_BYTES);

    /** Bytes that {@link #append} takes now; positive whenever {@link #next} has none. */
    int room() {
      return buffer.remaining();
    }

    /** Adds received bytes, at most {@link #room()}. */
    void append(final byte[] bytes, final int offset, final int count) {
      buffer.put(bytes, offset, count);
    }

    /** Whether a frame has begun and not ended. */
    boolean isPartial() {
      return buffer.position() > 0;
    }

    /**
     * The next whole frame; absent if it has not come yet.
     *
     * @throws ExchangeException (PROTOCOL) when the bytes are no frame; the stream is then of no
     *     use
     */
    @Nullable Frame next() {
      if (buffer.position() < Frame.HEADER_BYTES) {
        return null;
      }
      if (buffer.getShort(0) != Frame.MAGIC) {
        throw new ExchangeException(Reason.PROTOCOL, "bytes that are no frame");
      }
      if (buffer.get(2) != Frame.VERSION) {
        throw new ExchangeException(
            Reason.PROTOCOL,
            Message.of(
                    "the peer speaks version "
                        + buffer.get(2)
                        + " of the protocol, this process version "
                        + Frame.VERSION)
                .remedy("use the same Zerohop jar on the driver and all executors"));
      }
      final Frame.Type type = Frame.Type.of(buffer.get(3));
      final int length = buffer.getInt(4);
      if (length < type.minPayload || length > type.maxPayload) {
        throw new ExchangeException(Reason.PROTOCOL, "a " + type + " frame of wrong length");
      }
      if (buffer.position() < Frame.HEADER_BYTES + length) {
        return null;
      }
      buffer.flip().position(Frame.HEADER_BYTES);
      final byte[] payload = new byte[length];
      buffer.get(payload).compact();
      return new Frame(type, payload);
    }
  }
}
