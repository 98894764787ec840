package io.zerohop.spark.control;

import io.zerohop.spark.compat.SparkLinks;
import io.zerohop.spark.conf.NetworkTrust;
import java.nio.charset.StandardCharsets;
import java.security.GeneralSecurityException;
import java.util.HexFormat;
import java.util.Optional;
import javax.crypto.Mac;
import javax.crypto.spec.SecretKeySpec;
import org.apache.spark.SecurityManager;
import org.apache.spark.SparkConf;
import org.apache.spark.network.sasl.SecretKeyHolder;
import org.apache.spark.network.util.TransportConf;
import org.jspecify.annotations.Nullable;

/**
 * The authentication and encryption of a control channel: its own key, derived from the
 * application's secret, and Spark's settings with the proof always on. Immutable.
 */
public final class ControlSecurity implements SecretKeyHolder {
  /** Settings of Spark's transport for control channels alone are spark.zerohop-control.io.*. */
  static final String MODULE = "zerohop-control";

  static final String USER = "zerohop";
  static final String CIPHER = "spark.network.crypto.cipher";
  static final String GCM = "AES/GCM/NoPadding";
  private static final String ALGORITHM = "HmacSHA256";
  private static final byte[] PURPOSE =
      "zerohop control channel".getBytes(StandardCharsets.US_ASCII);
  private static final String IO = "spark." + MODULE + ".io.";

  private final String key;

  /**
   * @param secret the application's; at least 16 bytes
   */
  ControlSecurity(final byte[] secret) {
    if (secret.length < 16) {
      throw new IllegalArgumentException("A secret of " + secret.length + " bytes is too short");
    }
    try {
      final Mac mac = Mac.getInstance(ALGORITHM);
      mac.init(new SecretKeySpec(secret, ALGORITHM));
      this.key = HexFormat.of().formatHex(mac.doFinal(PURPOSE));
    } catch (final GeneralSecurityException e) {
      throw new IllegalStateException("This JVM has no " + ALGORITHM, e);
    }
  }

  @Override
  public String getSaslUser(final String user) {
    return USER;
  }

  @Override
  public @Nullable String getSecretKey(final String user) {
    return USER.equals(user) ? key : null;
  }

  /** Spark's settings as they hold for control channels. */
  static TransportConf transport(final SparkConf conf, final SecurityManager security) {
    final SparkConf own = conf.clone();
    own.set("spark.network.crypto.enabled", "true");
    own.set("spark.network.crypto.saslFallback", "false");
    // The first version takes a key from the agreement without mixing in what was said.
    own.set("spark.network.crypto.authEngineVersion", "2");
    if (hasSoundGcm(org.apache.spark.package$.MODULE$.SPARK_VERSION())) {
      own.setIfMissing(CIPHER, GCM); // Spark's default, AES/CTR, lets others flip bits.
    }
    own.setIfMissing(IO + "serverThreads", "2");
    own.setIfMissing(IO + "clientThreads", "2");
    own.setIfMissing(IO + "connectionCreationTimeout", "30s");
    return new TransportConf(MODULE, SparkLinks.newRpcConfig(security, own));
  }

  /** Spark has AES/GCM since 4.0, where it breaks the connections of channels like ours. */
  static boolean hasSoundGcm(final String sparkVersion) {
    final String[] parts = sparkVersion.split("[.-]", 3);
    final int major = Integer.parseInt(parts[0]);
    return major > 4 || (major == 4 && Integer.parseInt(parts[1]) >= 1);
  }

  /** Returns the key by which the user demands encryption, if there is one. */
  public static Optional<String> encryptionDemandedBy(final SparkConf conf) {
    return NetworkTrust.encryptionDemandedBy(key -> conf.get(key, null));
  }
}
