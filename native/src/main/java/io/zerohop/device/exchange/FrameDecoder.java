package io.zerohop.device.exchange;

import io.zerohop.device.Message;
import io.zerohop.device.exchange.ExchangeException.Reason;
import java.nio.ByteBuffer;
import org.jspecify.annotations.Nullable;

/**
 * Cuts a stream of bytes into frames. Memory is bounded by one frame of the largest size; a header
 * is checked before a byte of its payload is waited for. Not thread safe.
 */
final class FrameDecoder {
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
   * @throws ExchangeException (PROTOCOL) when the bytes are no frame; the stream is then of no use
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
