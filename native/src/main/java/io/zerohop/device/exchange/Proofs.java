package io.zerohop.device.exchange;

import io.zerohop.device.exchange.ExchangeException.Reason;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.security.GeneralSecurityException;
import java.security.MessageDigest;
import java.security.SecureRandom;
import java.util.Arrays;
import javax.crypto.Mac;
import javax.crypto.spec.SecretKeySpec;

/**
 * The challenge and response of both sides: HMAC-SHA256 under the application's secret, over the
 * role of who proves, both names, both nonces and both processes. The role keeps a proof from being
 * sent back, the names from being used towards somebody else, the nonces from being used again, and
 * the processes, which each side compares with what the kernel says, from being passed on. What
 * follows a handshake is sealed under a key of that handshake. Thread safe.
 */
final class Proofs {
  private static final String ALGORITHM = "HmacSHA256";
  private static final int MIN_SECRET_BYTES = 16;
  private static final SecureRandom RANDOM = new SecureRandom();

  private final SecretKeySpec key;

  /**
   * @throws IllegalArgumentException if the secret is missing or shorter than 16 bytes
   */
  Proofs(final byte[] secret) {
    if (secret == null || secret.length < MIN_SECRET_BYTES) {
      throw new IllegalArgumentException(
          "the exchange needs a secret of at least " + MIN_SECRET_BYTES + " bytes");
    }
    key = new SecretKeySpec(secret, ALGORITHM);
  }

  static byte[] newNonce() {
    final byte[] nonce = new byte[Frame.NONCE_BYTES];
    RANDOM.nextBytes(nonce);
    return nonce;
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
    try {
      final Mac mac = newMac(key);
      update(mac, role);
      mac.update(Frame.VERSION);
      update(mac, hello.client());
      update(mac, hello.server());
      mac.update(hello.nonce());
      final ByteBuffer process = ByteBuffer.allocate(ProcessIdentity.BYTES);
      hello.process().put(process);
      mac.update(process.flip());
      mac.update(challenge);
      return mac.doFinal(more);
    } catch (final GeneralSecurityException e) {
      throw lacks(e);
    }
  }

  private static Mac newMac(final SecretKeySpec key) throws GeneralSecurityException {
    final Mac mac = Mac.getInstance(ALGORITHM);
    mac.init(key);
    return mac;
  }

  private static IllegalStateException lacks(final GeneralSecurityException cause) {
    return new IllegalStateException("this JVM lacks " + ALGORITHM, cause);
  }

  /** With its length in front, so that no two lists of texts read the same. */
  private static void update(final Mac mac, final String text) {
    final byte[] bytes = text.getBytes(StandardCharsets.US_ASCII);
    mac.update((byte) bytes.length);
    mac.update(bytes);
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
    private final SecretKeySpec key;

    private Seals(final byte[] key) {
      this.key = new SecretKeySpec(key, ALGORITHM);
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
      try {
        final Mac mac = newMac(key);
        update(mac, type.name());
        mac.update(ByteBuffer.allocate(Long.BYTES).putLong(number).flip());
        return mac.doFinal(content);
      } catch (final GeneralSecurityException e) {
        throw lacks(e);
      }
    }
  }
}
