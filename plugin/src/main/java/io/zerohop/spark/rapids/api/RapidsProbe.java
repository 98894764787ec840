package io.zerohop.spark.rapids.api;

import com.nvidia.spark.rapids.ShimLoader;
import io.zerohop.spark.compat.LinkedMember;
import io.zerohop.spark.rapids.api.RapidsMember.RapidsFeature;
import java.io.IOException;
import java.io.InputStream;
import java.nio.charset.StandardCharsets;
import java.util.EnumMap;
import java.util.Map;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Finds the members of RAPIDS and cudf that Zerohop needs and this release lacks: {@link
 * RapidsMember}s, and those that Zerohop's classes link, which the resource {@value #LINKS} lists.
 * Nothing of RAPIDS is initialised for that, so it may be asked before RAPIDS starts. Immutable.
 */
public final class RapidsProbe {
  static final String LINKS = "links.txt";
  private static final Logger LOG = LoggerFactory.getLogger(RapidsProbe.class);

  /** Where RAPIDS declares its keys. */
  private static final String KEYS = "com/nvidia/spark/rapids/RapidsConf$.class";

  private final Map<RapidsFeature, String> missing;
  private final boolean knowsCudfKeys;

  private RapidsProbe(final Map<RapidsFeature, String> missing, final boolean knowsCudfKeys) {
    this.missing = missing;
    this.knowsCudfKeys = knowsCudfKeys;
  }

  /** What has everything; for RAPIDS as it is known. */
  public static RapidsProbe complete() {
    return new RapidsProbe(Map.of(), false);
  }

  /** Looks at the RAPIDS of this process. */
  public static RapidsProbe look() {
    final ClassLoader loader;
    try {
      loader = ShimLoader.getShimClassLoader();
    } catch (final RuntimeException | LinkageError e) {
      // No shim for this Spark, or a jar that our class loader does not see.
      return new RapidsProbe(Map.of(RapidsFeature.SHUFFLE, "its shim loader (" + e + ")"), false);
    }
    return of(loader);
  }

  /**
   * Looks at what a loader sees.
   *
   * @param loader of the classes for one version of Spark
   */
  public static RapidsProbe of(final ClassLoader loader) {
    final Map<RapidsFeature, String> missing = new EnumMap<>(RapidsFeature.class);
    for (final RapidsMember member : RapidsMember.values()) {
      try {
        member.find(loader);
      } catch (final ReflectiveOperationException | LinkageError e) {
        missing.putIfAbsent(member.feature(), member.signature());
      }
    }
    for (final LinkedMember link : LinkedMember.read(RapidsProbe.class, LINKS)) {
      if (!link.isIn(loader)) {
        missing.putIfAbsent(RapidsFeature.valueOf(link.feature()), link.toString());
      }
    }
    final String env = missing.get(RapidsFeature.ENV_OF_CONF);
    if (env != null && missing.containsKey(RapidsFeature.ENV_WITH_DISK)) {
      missing.putIfAbsent(RapidsFeature.SHUFFLE, env);
    }
    return new RapidsProbe(missing, namesCudfKeys(loader));
  }

  /** Whether the class that declares RAPIDS' keys has names of the new kind among its constants. */
  private static boolean namesCudfKeys(final ClassLoader loader) {
    try (InputStream in = loader.getResourceAsStream(KEYS)) {
      return in != null
          && new String(in.readAllBytes(), StandardCharsets.ISO_8859_1).contains("spark.cudf.");
    } catch (final IOException e) {
      LOG.debug("cannot read {}", KEYS, e);
      return false;
    }
  }

  /** The first thing that it lacks for a feature; null if it has all. */
  public @Nullable String missing(final RapidsFeature feature) {
    return missing.get(feature);
  }

  /** Whether keys of RAPIDS' may be set as {@code spark.cudf.*}, too. */
  public boolean knowsCudfKeys() {
    return knowsCudfKeys;
  }
}
