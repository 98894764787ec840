package io.zerohop.device.exchange;

import io.zerohop.device.exchange.ExchangeException.Reason;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.util.Arrays;

/**
 * The challenge and response of both sides: HMAC-SHA256 under the application's secret, over the
 * role of who proves, both names, both nonces and both processes. The role keeps a proof from being
 * sent back, the names from being used towards somebody else, the nonces from being used again, and
 * the processes, which each side compares with what the kernel says, from being passed on. What
 * follows a handshake is sealed under a key of that handshake. Thread safe.
 */
final class Proofs {
  private final byte[] key;

  /**
   * @throws IllegalArgumentException if the secret is missing or shorter than 16 bytes
   */
  Proofs(final byte[] secret) {
    if (secret == null || secret.length < Hmac.MIN_SECRET_BYTES) {
      throw new IllegalArgumentException(
          "the exchange needs a secret of at least " + Hmac.MIN_SECRET_BYTES + " bytes");
    }
    key = secret.clone();
  }

  static byte[] newNonce() {
    return Hmac.random(Frame.NONCE_BYTES);
  }

  /**
   * Returns the client's proof.
   *
   * @param challenge payload of the server's CHALLENGE
   */
  byte[] ofClient(final Frame.Hello hello, final byte[] challenge) {
    return prove("zerohop-exchange-client", hello, challenge, new byte[0]);
  }

  /** Returns the server's proof, which covers its greeting as well. */
  byte[] ofServer(final Frame.Hello hello, final byte[] challenge, final byte[] greeting) {
    return prove("zerohop-exchange-server", hello, challenge, greeting);
  }

  /** Returns the seals of the frames that follow a handshake. */
  Seals seals(final Frame.Hello hello, final byte[] challenge, final byte[] greeting) {
    return new Seals(prove("zerohop-exchange-seals", hello, challenge, greeting));
  }

  private byte[] prove(
      final String role, final Frame.Hello hello, final byte[] challenge, final byte[] more) {
    final ByteBuffer process = ByteBuffer.allocate(ProcessIdentity.BYTES);
    hello.process().put(process);
    return Hmac.of(
        key,
        text(role),
        new byte[] {Frame.VERSION},
        text(hello.client()),
        text(hello.server()),
        hello.nonce(),
        process.array(),
        challenge,
        more);
  }

  /** With its length in front, so that no two lists of texts read the same. */
  private static byte[] text(final String text) {
    final byte[] bytes = text.getBytes(StandardCharsets.US_ASCII);
    return ByteBuffer.allocate(1 + bytes.length).put((byte) bytes.length).put(bytes).array();
  }

  /** Compares in constant time. */
  static boolean same(final byte[] expected, final byte[] actual) {
    return MessageDigest.isEqual(expected, actual);
  }

  /**
   * Seals the requests and answers of one connection: an HMAC over the frame's number, its type and
   * its content. An answer has the number of its request, and the types of the two differ, so no
   * frame can be repeated, moved or turned around. Thread safe.
   */
  static final class Seals {
    private final byte[] key;

    private Seals(final byte[] key) {
      this.key = key;
    }

    /**
     * Returns the frame with its seal behind its content.
     *
     * @param number of the request on its connection
     */
    Frame seal(final Frame frame, final long number) {
      final byte[] content = frame.payload();
      final byte[] sealed = Arrays.copyOf(content, content.length + Frame.SEAL_BYTES);
      final byte[] seal = of(frame.type(), content, number);
      System.arraycopy(seal, 0, sealed, content.length, seal.length);
      return new Frame(frame.type(), sealed);
    }

    /**
     * Returns the frame without its seal.
     *
     * @throws ExchangeException (AUTHENTICATION) if the seal is not right
     */
    Frame open(final Frame frame, final long number) {
      final byte[] payload = frame.payload();
      final int length = payload.length - Frame.SEAL_BYTES;
      final byte[] content = Arrays.copyOf(payload, length);
      final byte[] seal = Arrays.copyOfRange(payload, length, payload.length);
      if (!same(of(frame.type(), content, number), seal)) {
        throw new ExchangeException(
            Reason.AUTHENTICATION, "a " + frame.type() + " that its sender did not seal");
      }
      return new Frame(frame.type(), content);
    }

    private byte[] of(final Frame.Type type, final byte[] content, final long number) {
      return Hmac.of(
          key, text(type.name()), ByteBuffer.allocate(Long.BYTES).putLong(number).array(), content);
    }
  }
}
