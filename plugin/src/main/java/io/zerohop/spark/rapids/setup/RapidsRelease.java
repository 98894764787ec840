package io.zerohop.spark.rapids.setup;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import io.zerohop.spark.rapids.api.RapidsFeature;
import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.util.ArrayList;
import java.util.EnumMap;
import java.util.List;
import java.util.Map;

/**
 * A release of the RAPIDS Accelerator, as the matrix ({@value #MATRIX}, docs/compatibility.md) has
 * it. Immutable.
 *
 * @param name the first two parts of its version
 * @param basis how it is known
 * @param without features that it lacks or that are not used with it, and why
 */
record RapidsRelease(String name, Basis basis, Map<RapidsFeature, String> without) {
  static final String MATRIX = "/io/zerohop/spark/rapids/compatibility.json";

  /** The basis of what is known of a release. */
  enum Basis {
    /** By its jar, which a check binds; docs/compatibility.md says what was run of it. */
    JAR,

    /** By its public source; nobody has run it. */
    SOURCE,

    /** Not in the matrix: its members are probed at start, and nothing else is known. */
    PROBE
  }

  private static final List<RapidsRelease> ALL = read();

  /** All of the matrix, the oldest first. */
  static List<RapidsRelease> all() {
    return ALL;
  }

  private static List<RapidsRelease> read() {
    try (InputStream in = RapidsRelease.class.getResourceAsStream(MATRIX)) {
      final List<RapidsRelease> all = new ArrayList<>();
      for (final JsonNode node : new ObjectMapper().readTree(in).get("releases")) {
        final Map<RapidsFeature, String> without = new EnumMap<>(RapidsFeature.class);
        final JsonNode lacks = node.get("without");
        lacks
            .fieldNames()
            .forEachRemaining(
                name -> without.put(RapidsFeature.valueOf(name), lacks.get(name).asText()));
        all.add(
            new RapidsRelease(
                node.get("release").asText(),
                node.get("basis").asText().equals("jar") ? Basis.JAR : Basis.SOURCE,
                without));
      }
      return List.copyOf(all);
    } catch (final IOException e) {
      throw new UncheckedIOException("Zerohop's jar lacks " + MATRIX, e);
    }
  }

  /**
   * The release that a version belongs to; null if it is older than all that are known. One that is
   * not known has what the probe sees, if it is newer than the oldest.
   */
  static RapidsRelease of(final String version) {
    final List<RapidsRelease> all = all();
    for (final RapidsRelease release : all) {
      if (version.startsWith(release.name + ".")) {
        return release;
      }
    }
    return isBefore(version, all.get(0).name)
        ? null
        : new RapidsRelease(version, Basis.PROBE, Map.of());
  }

  private static boolean isBefore(final String version, final String other) {
    final String[] left = version.split("\\.");
    final String[] right = other.split("\\.");
    final int year = Integer.compare(number(left, 0), number(right, 0));
    return year < 0 || year == 0 && number(left, 1) < number(right, 1);
  }

  /** What is no number is newer than anything. */
  private static int number(final String[] parts, final int index) {
    try {
      return index < parts.length ? Integer.parseInt(parts[index]) : 0;
    } catch (final NumberFormatException e) {
      return Integer.MAX_VALUE;
    }
  }
}
