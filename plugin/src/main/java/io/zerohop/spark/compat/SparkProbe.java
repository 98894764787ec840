package io.zerohop.spark.compat;

import io.zerohop.device.Message;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import org.jspecify.annotations.Nullable;

/**
 * Finds the members of Spark that Zerohop needs and this Spark lacks, by feature. Vendors' Sparks
 * have the version of an Apache release and may lack members of it. The resource {@value #LINKS}
 * lists all that our classes link of Spark, and those of our classes that Spark calls; a test holds
 * it against the class files. A feature is looked at when it is first asked for. Thread safe.
 */
public final class SparkProbe {
  static final String LINKS = "spark-links.txt";

  private static final String OURS = "io.zerohop.spark.";
  private static final SparkProbe HERE = new SparkProbe(SparkProbe.class.getClassLoader());

  private final ClassLoader loader;
  private final List<LinkedMember> links = LinkedMember.read(SparkProbe.class, LINKS);

  /** A sentence on what is missing first of a feature; empty if it has all. */
  private final Map<SparkFeature, String> missing = new ConcurrentHashMap<>();

  private SparkProbe(final ClassLoader loader) {
    this.loader = loader;
  }

  /** Returns the probe of this process's Spark. */
  public static SparkProbe here() {
    return HERE;
  }

  /** Returns a probe of the Spark that a loader sees, which sees our classes, too. */
  static SparkProbe of(final ClassLoader loader) {
    return new SparkProbe(loader);
  }

  /** Returns the first member that Spark lacks for a feature; null if it has all. */
  public @Nullable String missing(final SparkFeature feature) {
    final String first = missing.computeIfAbsent(feature, this::look);
    return first.isEmpty() ? null : first;
  }

  private String look(final SparkFeature feature) {
    for (final LinkedMember link : links) {
      if (link.feature().equals(feature.name()) && !link.isIn(loader)) {
        return "it lacks " + link;
      }
    }
    for (final String binder : feature.binders()) {
      try {
        Class.forName(OURS + binder, true, loader);
      } catch (final ClassNotFoundException | LinkageError e) {
        return reason(e);
      }
    }
    return "";
  }

  private static String reason(final Throwable failure) {
    final Throwable cause = failure.getCause() == null ? failure : failure.getCause();
    return Message.of(cause).what();
  }

  public boolean has(final SparkFeature feature) {
    return missing(feature) == null;
  }

  /**
   * Returns what comes of a feature that this Spark does not have, without a code or remedy; null
   * if it has it.
   */
  public @Nullable Message sentence(final SparkFeature feature) {
    final String lacks = missing(feature);
    return lacks == null
        ? null
        : Message.of("Zerohop goes without " + feature.words() + ", so " + feature.fallback())
            .at("Spark " + org.apache.spark.package$.MODULE$.SPARK_VERSION())
            .because(lacks);
  }
}
