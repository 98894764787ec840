package io.zerohop.device.exchange;

import java.security.GeneralSecurityException;
import java.security.SecureRandom;
import javax.crypto.Mac;
import javax.crypto.spec.SecretKeySpec;

/** HMAC-SHA256, by which processes prove that they know a secret, and random bits. Thread safe. */
public final class Hmac {
  /** Minimum length of a secret, so that nobody guesses it. */
  public static final int MIN_SECRET_BYTES = 16;

  private static final String ALGORITHM = "HmacSHA256";
  private static final SecureRandom RANDOM = new SecureRandom();

  private Hmac() {}

  /** Returns the code of several parts, one behind the other, under a key. */
  public static byte[] of(final byte[] key, final byte[]... parts) {
    try {
      final Mac mac = Mac.getInstance(ALGORITHM);
      mac.init(new SecretKeySpec(key, ALGORITHM));
      for (final byte[] part : parts) {
        mac.update(part);
      }
      return mac.doFinal();
    } catch (final GeneralSecurityException e) {
      throw new IllegalStateException("this JVM lacks " + ALGORITHM, e);
    }
  }

  /** Returns {@code count} random bytes, for a secret or a nonce. */
  public static byte[] random(final int count) {
    final byte[] bytes = new byte[count];
    RANDOM.nextBytes(bytes);
    return bytes;
  }
}
