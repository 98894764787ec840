package io.zerohop.spark.conf;

import org.apache.spark.SparkConf;

/**
 * RAPIDS' keys by both names: {@code spark.rapids.*}, and {@code spark.cudf.*} in releases that
 * know these names, which win there. Callers use the first of the two.
 */
public final class RapidsKeys {
  private static final String OLD = "spark.rapids.";
  private static final String NEW = "spark.cudf.";

  /** Set by the driver for the executors; not for users. */
  private static final String KNOWS_NEW = "spark.zerohop.internal.rapids.cudfKeys";

  private RapidsKeys() {}

  /** Notes that this application's RAPIDS knows the new names. */
  public static void knowNew(final SparkConf conf) {
    conf.set(KNOWS_NEW, "true");
  }

  private static boolean knowsNew(final SparkConf conf) {
    return conf.getBoolean(KNOWS_NEW, false);
  }

  private static String renamed(final String key) {
    return NEW + key.substring(OLD.length());
  }

  /** The name under which RAPIDS takes a key: the new one if it is set and known. */
  public static String inForce(final SparkConf conf, final String key) {
    final String renamed = renamed(key);
    return knowsNew(conf) && conf.contains(renamed) ? renamed : key;
  }

  /** What RAPIDS takes for a key; a default if neither name is set. */
  public static String get(final SparkConf conf, final String key, final String orElse) {
    return conf.get(inForce(conf, key), orElse);
  }

  /** Whether RAPIDS finds a key by either name. */
  public static boolean contains(final SparkConf conf, final String key) {
    return conf.contains(inForce(conf, key));
  }

  /**
   * Sets a key under all names that RAPIDS knows.
   *
   * @param prefix before both of them; empty for the configuration itself
   */
  public static void set(
      final SparkConf conf, final String prefix, final String key, final String value) {
    conf.set(prefix + key, value);
    if (knowsNew(conf)) {
      conf.set(prefix + renamed(key), value);
    }
  }
}
