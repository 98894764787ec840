package io.zerohop.spark.conf;

import java.util.Arrays;
import java.util.function.UnaryOperator;
import org.jspecify.annotations.Nullable;

/**
 * Spark's plugins that Zerohop asks for, by the key that names them. Needs no class of Spark's,
 * since the doctor also runs without.
 */
public final class Plugins {
  public static final String KEY = "spark.plugins";
  public static final String ZEROHOP = "io.zerohop.spark.ZerohopPlugin";
  public static final String RAPIDS = "com.nvidia.spark.SQLPlugin";

  private Plugins() {}

  /**
   * Returns whether a plugin is configured.
   *
   * @param settings the value of a key; null if it is not set
   */
  public static boolean has(final UnaryOperator<@Nullable String> settings, final String plugin) {
    final String all = settings.apply(KEY);
    return all != null && Arrays.stream(all.split(",")).map(String::trim).anyMatch(plugin::equals);
  }
}
