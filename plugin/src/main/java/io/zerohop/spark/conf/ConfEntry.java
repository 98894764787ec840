package io.zerohop.spark.conf;

import java.util.function.Function;
import org.apache.spark.SparkConf;

/**
 * One configuration key: its name, type, default and the sentence that explains it.
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
    final String text = conf.get(key, defaultText).trim();
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
}
