package io.zerohop.spark.rapids.api;

import com.nvidia.spark.rapids.ShimLoader;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStream;
import java.io.InputStreamReader;
import java.io.UncheckedIOException;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.MethodHandles.Lookup;
import java.lang.invoke.MethodType;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.EnumMap;
import java.util.List;
import java.util.Map;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * What this RAPIDS Accelerator lacks of what Zerohop uses of it: {@link RapidsMember}s, and what
 * our classes link of cudf and of RAPIDS' plain classes, which the resource {@value #LINKS} lists
 * (a test holds it against the classes). Nothing of RAPIDS is initialised for that, so it may be
 * asked before RAPIDS starts. Immutable.
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
    for (final Link link : links()) {
      if (!link.isIn(loader)) {
        missing.putIfAbsent(link.feature(), link.toString());
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
  public String missing(final RapidsFeature feature) {
    return missing.get(feature);
  }

  /** Whether keys of RAPIDS' may be set as {@code spark.cudf.*}, too. */
  public boolean knowsCudfKeys() {
    return knowsCudfKeys;
  }

  /** All that our classes link, beside {@link RapidsMember}. */
  static List<Link> links() {
    try (InputStream in = RapidsProbe.class.getResourceAsStream(LINKS);
        BufferedReader lines =
            new BufferedReader(new InputStreamReader(in, StandardCharsets.UTF_8))) {
      final List<Link> links = new ArrayList<>();
      lines.lines().forEach(line -> links.add(Link.of(line)));
      return links;
    } catch (final IOException e) {
      throw new UncheckedIOException("Zerohop's jar lacks " + LINKS, e);
    }
  }

  /**
   * A class, or a method or field of one, that our classes name.
   *
   * @param member empty if it is the class alone
   * @param descriptor a method's begins with a parenthesis
   */
  record Link(RapidsFeature feature, String owner, String member, String descriptor) {
    /** Of a line of the resource. */
    static Link of(final String line) {
      final String[] parts = line.split(" ");
      final boolean isClass = parts.length == 2;
      return new Link(
          RapidsFeature.valueOf(parts[0]),
          parts[1],
          isClass ? "" : parts[2],
          isClass ? "" : parts[3]);
    }

    boolean isIn(final ClassLoader loader) {
      try {
        final Class<?> of = Class.forName(owner, false, loader);
        return member.isEmpty() || isMember(of, loader);
      } catch (final ClassNotFoundException | LinkageError | TypeNotPresentException e) {
        return false;
      }
    }

    private boolean isMember(final Class<?> of, final ClassLoader loader) {
      final Lookup lookup = MethodHandles.publicLookup();
      if (!descriptor.startsWith("(")) {
        final Class<?> type =
            MethodType.fromMethodDescriptorString("()" + descriptor, loader).returnType();
        return finds(() -> lookup.findGetter(of, member, type))
            || finds(() -> lookup.findStaticGetter(of, member, type));
      }
      final MethodType type = MethodType.fromMethodDescriptorString(descriptor, loader);
      return member.equals("<init>")
          ? finds(() -> lookup.findConstructor(of, type))
          : finds(() -> lookup.findVirtual(of, member, type))
              || finds(() -> lookup.findStatic(of, member, type));
    }

    @FunctionalInterface
    private interface Finder {
      Object find() throws ReflectiveOperationException;
    }

    private static boolean finds(final Finder finder) {
      try {
        return finder.find() != null;
      } catch (final ReflectiveOperationException e) {
        return false;
      }
    }

    @Override
    public String toString() {
      return member.isEmpty() ? owner : owner + " " + member + " " + descriptor;
    }
  }
}
