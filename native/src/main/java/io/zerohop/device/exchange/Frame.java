package io.zerohop.device.exchange;

import io.zerohop.device.SegmentHandle;
import io.zerohop.device.exchange.ExchangeException.Reason;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;

/**
 * One message of the exchange. All numbers are big endian.
 *
 * <pre>
 *  0        2         3      4                8
 *  | magic  | version | type | payload length | payload ...
 *
 *  HELLO      client nonce (32) | length (1) | client's name | length (1) | server's name
 *  CHALLENGE  server nonce (32)
 *  ANSWER     client's proof (32)
 *  WELCOME    server's proof (32) | greeting (0 to 1024)
 *  FETCH      segment id (8)
 *  SEGMENT    segment id (8) | size in bytes (8) | kind (1) | opaque handle (0 or 64)
 *             a POSIX_FD travels with the first byte of the frame
 *  GONE       segment id (8)
 *  REFUSED    reason (1)
 *  WITHHELD   segment id (8)
 * </pre>
 */
record Frame(Type type, byte[] payload) {
  static final int HEADER_BYTES = 8;
  static final short MAGIC = 0x5A48;
  static final byte VERSION = 2;
  static final int NONCE_BYTES = 32;
  static final int PROOF_BYTES = 32;
  static final int OPAQUE_BYTES = 64;
  static final int MAX_GREETING_BYTES = 1024;
  static final int MAX_NAME_BYTES = 64;
  static final int MAX_PAYLOAD_BYTES = PROOF_BYTES + MAX_GREETING_BYTES;
  static final int MAX_FRAME_BYTES = HEADER_BYTES + MAX_PAYLOAD_BYTES;

  private static final int SEGMENT_FIXED_BYTES = 17;

  /** The messages and how long their payloads may be. The codes are fixed. */
  enum Type {
    HELLO(1, NONCE_BYTES + 4, NONCE_BYTES + 2 + 2 * MAX_NAME_BYTES),
    CHALLENGE(2, NONCE_BYTES, NONCE_BYTES),
    ANSWER(3, PROOF_BYTES, PROOF_BYTES),
    WELCOME(4, PROOF_BYTES, PROOF_BYTES + MAX_GREETING_BYTES),
    FETCH(5, 8, 8),
    SEGMENT(6, SEGMENT_FIXED_BYTES, SEGMENT_FIXED_BYTES + OPAQUE_BYTES),
    GONE(7, 8, 8),
    REFUSED(8, 1, 1),
    WITHHELD(9, 8, 8);

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
  record Hello(byte[] nonce, String client, String server) {}

  /** The content of a SEGMENT. */
  record SegmentInfo(long id, long bytes, SegmentHandle.Kind kind, byte[] opaque) {}

  static Frame hello(final byte[] nonce, final String client, final String server) {
    final byte[] clientBytes = client.getBytes(StandardCharsets.US_ASCII);
    final byte[] serverBytes = server.getBytes(StandardCharsets.US_ASCII);
    final ByteBuffer payload =
        ByteBuffer.allocate(NONCE_BYTES + 2 + clientBytes.length + serverBytes.length);
    payload.put(nonce);
    payload.put((byte) clientBytes.length).put(clientBytes);
    payload.put((byte) serverBytes.length).put(serverBytes);
    return new Frame(Type.HELLO, payload.array());
  }

  static Frame welcome(final byte[] proof, final byte[] greeting) {
    final ByteBuffer payload = ByteBuffer.allocate(proof.length + greeting.length);
    return new Frame(Type.WELCOME, payload.put(proof).put(greeting).array());
  }

  static Frame ofId(final Type type, final long segmentId) {
    return new Frame(type, ByteBuffer.allocate(8).putLong(segmentId).array());
  }

  static Frame segment(final long segmentId, final SegmentHandle handle) {
    final byte[] opaque = handle.opaque();
    final ByteBuffer payload = ByteBuffer.allocate(SEGMENT_FIXED_BYTES + opaque.length);
    payload.putLong(segmentId).putLong(handle.bytes()).put(handle.kind().code()).put(opaque);
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
    final String client = name(in);
    final String server = name(in);
    if (in.hasRemaining()) {
      throw new ExchangeException(Reason.PROTOCOL, "bytes behind the names of a HELLO");
    }
    return new Hello(nonce, client, server);
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

  SegmentInfo asSegment() {
    final ByteBuffer in = ByteBuffer.wrap(payload);
    final long id = in.getLong();
    final long bytes = in.getLong();
    final byte code = in.get();
    final byte[] opaque = new byte[in.remaining()];
    in.get(opaque);
    for (final SegmentHandle.Kind kind : SegmentHandle.Kind.values()) {
      final int expected = kind == SegmentHandle.Kind.POSIX_FD ? 0 : OPAQUE_BYTES;
      if (kind.code() == code && opaque.length == expected && bytes > 0) {
        return new SegmentInfo(id, bytes, kind, opaque);
      }
    }
    throw new ExchangeException(Reason.PROTOCOL, "a SEGMENT of unknown kind or wrong size");
  }

  Reason asReason() {
    final int ordinal = payload[0] & 0xFF;
    final Reason[] reasons = Reason.values();
    return ordinal < reasons.length ? reasons[ordinal] : Reason.PROTOCOL;
  }
}
