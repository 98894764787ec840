package io.zerohop.spark.blocktransfer.sent;

import org.apache.spark.SparkConf;
import org.jspecify.annotations.Nullable;

/** The encryption of Spark's connections between executors. */
public enum PortEncryption {
  NONE("not encrypted"),
  AES("encrypted by spark.network.crypto"),
  SASL("encrypted by SASL"),
  TLS("encrypted by TLS");

  private final String words;

  PortEncryption(final String words) {
    this.words = words;
  }

  /** Returns the encryption of a configuration, as far as this release of Spark has it. */
  public static PortEncryption of(final SparkConf conf) {
    final String version = org.apache.spark.package$.MODULE$.SPARK_VERSION();
    final boolean knowsTls = Integer.parseInt(version.substring(0, version.indexOf('.'))) >= 4;
    if (knowsTls && conf.getBoolean("spark.ssl.rpc.enabled", false)) {
      return TLS;
    }
    if (!conf.getBoolean("spark.authenticate", false)) {
      return NONE; // Spark's other keys do nothing without.
    }
    if (conf.getBoolean("spark.network.crypto.enabled", false)) {
      return AES;
    }
    return conf.getBoolean("spark.authenticate.enableSaslEncryption", false) ? SASL : NONE;
  }

  /** Returns the words for a connection. */
  String words() {
    return words;
  }

  /**
   * Returns why blocks must not be sent as they are: the user wants them encrypted on disks, and
   * Spark's block transfer also encrypts them on the way. Null if they may be.
   */
  public static @Nullable String obstacle(final SparkConf conf) {
    return conf.getBoolean("spark.io.encryption.enabled", false) && of(conf) == NONE
        ? "spark.io.encryption.enabled requires encryption, and Spark's connections have none"
        : null;
  }
}
