package io.zerohop.shuffle.scale;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;

/**
 * Where a simulation writes what it has measured, a line of JSON for each row: the file that the
 * property {@code zerohop.scale.out} names. Without it simulations are small, and only check.
 */
public final class Rows {
  private static final String FILE = System.getProperty("zerohop.scale.out");

  private Rows() {}

  /** Whether there is one, so that simulations run in full. */
  public static boolean wanted() {
    return FILE != null;
  }

  /**
   * Writes a row, if there is a file.
   *
   * @param fields names and values in turns; values are texts, numbers or truth values
   */
  public static void write(final Object... fields) {
    if (!wanted()) {
      return;
    }
    final StringBuilder row = new StringBuilder("{");
    for (int i = 0; i < fields.length; i += 2) {
      final Object value = fields[i + 1];
      row.append(i == 0 ? "" : ", ").append('"').append(fields[i]).append("\": ");
      row.append(value instanceof String ? "\"" + value + '"' : value);
    }
    try {
      Files.writeString(
          Path.of(FILE), row.append("}\n"), StandardOpenOption.CREATE, StandardOpenOption.APPEND);
    } catch (final IOException e) {
      throw new UncheckedIOException(e);
    }
  }
}
