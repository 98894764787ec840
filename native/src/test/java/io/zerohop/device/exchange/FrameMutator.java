package io.zerohop.device.exchange;

import io.zerohop.device.SegmentHandle;
import java.nio.ByteBuffer;
import java.util.Arrays;
import java.util.Random;

/** Makes bad bytes out of good frames. */
final class FrameMutator {
  private final Random random;

  FrameMutator(final Random random) {
    this.random = random;
  }

  /** A well-formed frame of any type with random content. */
  Frame anyFrame() {
    switch (Frame.Type.values()[random.nextInt(Frame.Type.values().length)]) {
      case HELLO:
        return Frame.hello(bytes(Frame.NONCE_BYTES), "client-" + random.nextInt(9), "server");
      case CHALLENGE:
        return Frame.challenge(bytes(Frame.NONCE_BYTES), ProcessIdentity.self());
      case ANSWER:
        return new Frame(Frame.Type.ANSWER, bytes(Frame.PROOF_BYTES));
      case WELCOME:
        return Frame.welcome(
            bytes(Frame.PROOF_BYTES), bytes(random.nextInt(Frame.MAX_GREETING_BYTES + 1)));
      case FETCH:
        return sealed(Frame.ofId(Frame.Type.FETCH, random.nextInt(4)));
      case SEGMENT:
        return sealed(
            Frame.segment(
                random.nextInt(4),
                new OpaqueHandle(SegmentHandle.Kind.FABRIC, 1L << random.nextInt(40), bytes(64))));
      case GONE:
        return sealed(Frame.ofId(Frame.Type.GONE, random.nextLong()));
      case WITHHELD:
        return sealed(Frame.ofId(Frame.Type.WITHHELD, random.nextLong()));
      default:
        return Frame.refused(ExchangeException.Reason.BUSY);
    }
  }

  /** The frame with some seal or other. */
  private Frame sealed(final Frame frame) {
    final byte[] content = frame.payload();
    final byte[] payload = bytes(content.length + Frame.SEAL_BYTES);
    System.arraycopy(content, 0, payload, 0, content.length);
    return new Frame(frame.type(), payload);
  }

  /** One of the ways in which bytes go wrong. */
  byte[] mutate(final byte[] good) {
    final byte[] bad = good.clone();
    switch (random.nextInt(9)) {
      case 0: // One bit.
        bad[random.nextInt(bad.length)] ^= (byte) (1 << random.nextInt(8));
        return bad;
      case 1: // Several bytes.
        for (int i = random.nextInt(8); i >= 0; i--) {
          bad[random.nextInt(bad.length)] = (byte) random.nextInt();
        }
        return bad;
      case 2: // Cut off.
        return Arrays.copyOf(bad, random.nextInt(bad.length));
      case 3: // Too long.
        return Arrays.copyOf(bad, bad.length + 1 + random.nextInt(2 * Frame.MAX_FRAME_BYTES));
      case 4: // Another length is claimed.
        ByteBuffer.wrap(bad).putInt(4, random.nextInt());
        return bad;
      case 5: // A little more or less is claimed.
        ByteBuffer.wrap(bad).putInt(4, bad.length - Frame.HEADER_BYTES + random.nextInt(9) - 4);
        return bad;
      case 6: // Another type is claimed.
        bad[3] = (byte) random.nextInt(12);
        return bad;
      case 7: // The beginning is missing.
        return Arrays.copyOfRange(bad, random.nextInt(bad.length), bad.length);
      default: // Noise.
        return bytes(random.nextInt(3 * Frame.MAX_FRAME_BYTES));
    }
  }

  byte[] bytes(final int length) {
    final byte[] bytes = new byte[length];
    random.nextBytes(bytes);
    return bytes;
  }
}
