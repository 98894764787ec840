package io.zerohop.spark.task;

import io.zerohop.shuffle.block.Location;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;

/**
 * Caches parsed locations by their text. Each reduce task has those of all owners, and parsing a
 * thousand takes several times as long as Spark needs to list its blocks. Thread safe.
 */
final class KnownLocations {
  /** Some MB; executors come and go, and nobody says which text will not come again. */
  private static final int MOST = 16_384;

  private final Map<String, Location> known = new ConcurrentHashMap<>();

  /** The location; null if the text is null or none of this version. */
  Location of(final String text) {
    if (text == null) {
      return null;
    }
    final Location location = known.get(text);
    return location != null ? location : parse(text);
  }

  private Location parse(final String text) {
    final Location location = Location.parse(text);
    if (location != null) {
      if (known.size() >= MOST) {
        known.clear();
      }
      known.put(text, location);
    }
    return location;
  }

  /** Locations that are kept. */
  int size() {
    return known.size();
  }
}
