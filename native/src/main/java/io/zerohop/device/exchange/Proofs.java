package io.zerohop.device.exchange;

import java.nio.charset.StandardCharsets;
import java.security.GeneralSecurityException;
import java.security.MessageDigest;
import java.security.SecureRandom;
import javax.crypto.Mac;
import javax.crypto.spec.SecretKeySpec;

/**
 * The challenge and response of both sides: HMAC-SHA256 under the application's secret, over the
 * role of who proves, both names and both nonces. The role keeps a proof from being sent back, the
 * names from being used towards somebody else, the nonces from being used again. Thread safe.
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

  byte[] ofClient(final Frame.Hello hello, final byte[] serverNonce) {
    return prove("zerohop-exchange-client", hello, serverNonce, new byte[0]);
  }

  /** The server's proof covers its greeting as well. */
  byte[] ofServer(final Frame.Hello hello, final byte[] serverNonce, final byte[] greeting) {
    return prove("zerohop-exchange-server", hello, serverNonce, greeting);
  }

  private byte[] prove(
      final String role, final Frame.Hello hello, final byte[] serverNonce, final byte[] more) {
    try {
      final Mac mac = Mac.getInstance(ALGORITHM);
      mac.init(key);
      update(mac, role);
      mac.update(Frame.VERSION);
      update(mac, hello.client());
      update(mac, hello.server());
      mac.update(hello.nonce());
      mac.update(serverNonce);
      return mac.doFinal(more);
    } catch (final GeneralSecurityException e) {
      throw new IllegalStateException("this JVM lacks " + ALGORITHM, e);
    }
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
}
