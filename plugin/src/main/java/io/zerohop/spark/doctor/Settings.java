package io.zerohop.spark.doctor;

import io.zerohop.device.Message;
import io.zerohop.shuffle.conf.Config;
import io.zerohop.spark.conf.NetworkTrust;
import io.zerohop.spark.conf.Plugins;
import java.io.IOException;
import java.io.Reader;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Map;
import java.util.Properties;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import org.jspecify.annotations.Nullable;

/**
 * An application's configuration as its user gives it, without Spark: {@code --properties-file}
 * first, then {@code --conf}. Immutable.
 *
 * @param ofFile keys whose values stand in a file alone
 */
public record Settings(Map<String, String> values, Set<String> ofFile) {
  public Settings {
    values = Map.copyOf(values);
    ofFile = Set.copyOf(ofFile);
  }

  /** Names the keys: values may be secrets. */
  @Override
  public String toString() {
    return values.keySet().toString();
  }

  /** These and no others, of an application that runs by them. */
  public static Settings of(final Map<String, String> values) {
    return new Settings(values, Set.of());
  }

  /**
   * Reads what a command line names.
   *
   * @param file as {@code spark-submit} takes it
   * @param conf overrides it
   */
  static Settings read(final @Nullable Path file, final Map<String, String> conf)
      throws IOException {
    final Map<String, String> values = new TreeMap<>();
    if (file != null) {
      final Properties properties = new Properties();
      try (Reader in = Files.newBufferedReader(file, StandardCharsets.UTF_8)) {
        properties.load(in);
      }
      properties.forEach((key, value) -> values.put(key.toString(), value.toString().trim()));
    }
    final Set<String> ofFile = new TreeSet<>(values.keySet());
    ofFile.removeAll(conf.keySet());
    values.putAll(conf);
    return new Settings(values, ofFile);
  }

  /** Null if the key is not set. */
  @Nullable String get(final String key) {
    return values.get(key);
  }

  /** Returns whether the value of a key is a file's, and nobody has said it on the command line. */
  boolean isOfFile(final String key) {
    return ofFile.contains(key);
  }

  boolean isEmpty() {
    return values.isEmpty();
  }

  /**
   * The requirements of the settings on the machine, as far as they are needed without Spark on the
   * class path. Immutable.
   *
   * @param conf Zerohop's own keys
   * @param noPort why no port may be opened for other nodes, if so
   * @param jucxOfFile whether a file alone names the jucx jar, so that it is not loaded
   * @param rapids whether RAPIDS' plugin is configured
   */
  record Wanted(Config conf, @Nullable Message noPort, boolean jucxOfFile, boolean rapids) {
    /** Throws an IllegalArgumentException for a value that is not valid. */
    static Wanted of(final Settings settings) {
      return new Wanted(
          Config.read(settings::get),
          NetworkTrust.obstacle(settings::get),
          settings.isOfFile("spark.zerohop.ucx.jucx"),
          Plugins.has(settings::get, Plugins.RAPIDS));
    }

    boolean ucx() {
      return noPort == null;
    }
  }
}
