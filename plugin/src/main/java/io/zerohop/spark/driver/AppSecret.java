package io.zerohop.spark.driver;

import io.zerohop.device.Message;
import io.zerohop.spark.log.UnusableException;
import java.nio.charset.StandardCharsets;
import java.security.GeneralSecurityException;
import java.security.SecureRandom;
import javax.crypto.Mac;
import javax.crypto.spec.SecretKeySpec;
import org.apache.spark.SparkEnv;

/**
 * The application's secret for the exchange of segments between executors of a node. With {@code
 * spark.authenticate} it is derived from Spark's secret, so it never travels; else the driver draws
 * 256 random bits, which every shuffle handle carries.
 */
public final class AppSecret {
  private static final int BYTES = 32;
  private static final byte[] PURPOSE =
      "zerohop segment exchange".getBytes(StandardCharsets.US_ASCII);

  private AppSecret() {}

  /** Returns the driver's secret for handles: random bits, or nothing if executors derive it. */
  public static byte[] forHandles(final boolean authenticate) {
    if (authenticate) {
      return new byte[0];
    }
    final byte[] secret = new byte[BYTES];
    new SecureRandom().nextBytes(secret);
    return secret;
  }

  /** The secret in force, from what a handle carried. */
  public static byte[] resolve(final byte[] carried, final SparkEnv env) {
    if (carried.length > 0) {
      return carried;
    }
    final String key = env.securityManager().getSecretKey();
    if (key == null) {
      throw new UnusableException(
          Message.of("the driver has spark.authenticate on, but this executor has no Spark secret")
              .remedy("set spark.authenticate for executors as well"));
    }
    try {
      final Mac mac = Mac.getInstance("HmacSHA256");
      mac.init(new SecretKeySpec(key.getBytes(StandardCharsets.UTF_8), "HmacSHA256"));
      return mac.doFinal(PURPOSE);
    } catch (final GeneralSecurityException e) {
      throw new IllegalStateException("This JVM has no HmacSHA256", e);
    }
  }
}
