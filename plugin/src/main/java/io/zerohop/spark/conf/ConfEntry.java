package io.zerohop.spark.conf;

import java.util.Locale;
import java.util.function.Function;
import org.apache.spark.SparkConf;
import org.apache.spark.network.util.JavaUtils;

/**
 * A configuration key: name, type, default and documentation.
 *
 * @param <T> the type of its value
 * @param key the full name, {@code spark.zerohop.*}
 * @param type the type in the words of Spark's documentation
 * @param defaultText the default as a user would write it, or what it is derived from
 * @param doc one sentence
 * @param parser reads the value from the text; throws IllegalArgumentException if it is not valid
 */
public record ConfEntry<T>(
    String key, String type, String defaultText, String doc, Function<String, T> parser) {

  /**
   * The value in force.
   *
   * @throws IllegalArgumentException naming the key, the text and what is expected
   */
  public T get(final SparkConf conf) {
    return of(conf.get(key, defaultText));
  }

  /**
   * The value that a text stands for.
   *
   * @param given null for the default
   * @throws IllegalArgumentException naming the key, the text and what is expected
   */
  public T of(final String given) {
    final String text = (given == null ? defaultText : given).trim();
    try {
      return parser.apply(text);
    } catch (final RuntimeException e) {
      throw new IllegalArgumentException(
          key
              + "="
              + text
              + " is not valid: expected "
              + type
              + ", for example "
              + defaultText
              + "; "
              + e.getMessage(),
          e);
    }
  }

  static ConfEntry<Boolean> ofBoolean(
      final String key, final boolean defaultValue, final String doc) {
    return new ConfEntry<>(
        key, "boolean", Boolean.toString(defaultValue), doc, ConfEntry::parseBoolean);
  }

  static ConfEntry<Integer> ofInt(
      final String key, final int defaultValue, final int least, final int most, final String doc) {
    return new ConfEntry<>(
        key,
        "int",
        Integer.toString(defaultValue),
        doc,
        text -> (int) within(least, most, Long.parseLong(text)));
  }

  /** A number of bytes, written as Spark writes sizes. */
  static ConfEntry<Long> ofSize(
      final String key,
      final String defaultText,
      final long least,
      final long most,
      final String doc) {
    return new ConfEntry<>(key, "size", defaultText, doc, text -> size(text, least, most));
  }

  /** A number of bytes, or -1 for {@link ZerohopConf#AUTO}, which is the default. */
  static ConfEntry<Long> ofSizeOrAuto(
      final String key, final long least, final long most, final String doc) {
    return new ConfEntry<>(
        key,
        "size",
        ZerohopConf.AUTO,
        doc,
        text -> ZerohopConf.AUTO.equals(text) ? -1L : size(text, least, most));
  }

  /** A number of milliseconds, written as Spark writes durations. */
  static ConfEntry<Long> ofDuration(
      final String key, final String defaultText, final long leastMillis, final String doc) {
    return new ConfEntry<>(
        key,
        "duration",
        defaultText,
        doc,
        text -> within(leastMillis, Long.MAX_VALUE, JavaUtils.timeStringAsMs(text)));
  }

  static ConfEntry<String> ofText(
      final String key, final String type, final String defaultText, final String doc) {
    return new ConfEntry<>(key, type, defaultText, doc, Function.identity());
  }

  private static boolean parseBoolean(final String text) {
    return switch (text.toLowerCase(Locale.ROOT)) {
      case "true" -> true;
      case "false" -> false;
      default -> throw new IllegalArgumentException("neither true nor false");
    };
  }

  private static long size(final String text, final long least, final long most) {
    return within(least, most, JavaUtils.byteStringAsBytes(text));
  }

  private static long within(final long least, final long most, final long value) {
    if (value < least || value > most) {
      throw new IllegalArgumentException("must be from " + least + " to " + most);
    }
    return value;
  }
}
