package io.zerohop.spark.doctor;

import java.io.IOException;
import java.io.Reader;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Map;
import java.util.Properties;
import java.util.TreeMap;

/**
 * An application's configuration as its user gives it, without Spark: {@code --properties-file}
 * first, then {@code --conf}. Immutable.
 */
public final class Settings {
  private final Map<String, String> values;

  private Settings(final Map<String, String> values) {
    this.values = Map.copyOf(values);
  }

  /** These and no others. */
  public static Settings of(final Map<String, String> values) {
    return new Settings(values);
  }

  /**
   * Reads what a command line names.
   *
   * @param file as {@code spark-submit} takes it; null if there is none
   * @param conf overrides it
   * @throws IOException if the file cannot be read
   */
  static Settings read(final Path file, final Map<String, String> conf) throws IOException {
    final Map<String, String> values = new TreeMap<>();
    if (file != null) {
      final Properties properties = new Properties();
      try (Reader in = Files.newBufferedReader(file, StandardCharsets.UTF_8)) {
        properties.load(in);
      }
      properties.forEach((key, value) -> values.put(key.toString(), value.toString().trim()));
    }
    values.putAll(conf);
    return new Settings(values);
  }

  /** The value of a key; null if it is not set. */
  String get(final String key) {
    return values.get(key);
  }

  /** All of them. */
  Map<String, String> all() {
    return values;
  }

  boolean isEmpty() {
    return values.isEmpty();
  }
}
