package io.zerohop.spark.report;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.DeserializationFeature;
import com.fasterxml.jackson.databind.ObjectMapper;

/** Records as JSON, by the Jackson that Spark has. Thread safe. */
public final class ReportJson {
  private static final ObjectMapper MAPPER =
      new ObjectMapper().configure(DeserializationFeature.FAIL_ON_UNKNOWN_PROPERTIES, false);

  private ReportJson() {}

  /** The text of a record. */
  public static String write(final Object value) {
    try {
      return MAPPER.writeValueAsString(value);
    } catch (final JsonProcessingException e) {
      throw new IllegalArgumentException(value.getClass() + " cannot be written as JSON", e);
    }
  }

  /**
   * The record of a text.
   *
   * @throws IllegalArgumentException if the text is not one of that type
   */
  public static <T> T read(final String text, final Class<T> type) {
    final T value;
    try {
      value = MAPPER.readValue(text, type);
    } catch (final JsonProcessingException e) {
      throw new IllegalArgumentException("not a " + type.getSimpleName() + " as JSON", e);
    }
    if (value == null) {
      throw new IllegalArgumentException("no " + type.getSimpleName() + ", but null");
    }
    return value;
  }
}
