package io.zerohop.spark.ui;

import java.util.Locale;
import java.util.function.UnaryOperator;

/**
 * What a user has asked the page for.
 *
 * @param path label of the only path that is shown; empty for all
 * @param text what a shuffle that is shown has in its row; empty for all
 */
record PageQuery(String path, String text) {
  private static final int MOST_CHARS = 100;

  /** Everything. */
  static final PageQuery ALL = new PageQuery("", "");

  /** The query of a request, by its parameters; null stands for those that are not there. */
  static PageQuery of(final UnaryOperator<String> parameter) {
    return new PageQuery(clean(parameter.apply("path")), clean(parameter.apply("q")));
  }

  private static String clean(final String given) {
    final String text = given == null ? "" : given.trim().toLowerCase(Locale.ROOT);
    return text.length() <= MOST_CHARS ? text : text.substring(0, MOST_CHARS);
  }

  boolean shows(final String label) {
    return path.isEmpty() || path.equals(label);
  }
}
