package io.zerohop.spark.control;

import io.zerohop.device.ZerohopException;
import io.zerohop.device.ZerohopException.Category;
import java.util.Locale;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.jspecify.annotations.Nullable;

/**
 * A service's refusal under way. Spark sends the print of an exception, stack trace and all; this
 * one prints as a single text that the other end knows again. The text is ASCII, since Spark prints
 * in the charset of the JVM: other characters are written as in Java's source, and so is a
 * backslash.
 */
final class Refusal extends RuntimeException {
  private static final long serialVersionUID = 1L;
  private static final String MARK = "zerohop refuses, ";
  private static final int WORDS = 4_096;
  private static final Pattern ESCAPED = Pattern.compile("\\\\u([0-9a-f]{4})");

  Refusal(final RuntimeException reason) {
    this(categoryOf(reason), reason.getMessage() == null ? reason.toString() : reason.getMessage());
  }

  Refusal(final Category category, final String words) {
    super(
        MARK + category + ":" + escaped(words.substring(0, Math.min(WORDS, words.length()))),
        null,
        false,
        false);
  }

  @Override
  @SuppressWarnings("OverrideThrowableToString") // Spark sends the print; see above.
  public String toString() {
    return String.valueOf(getMessage());
  }

  /**
   * Reads the refusal of the other end.
   *
   * @param failure what Spark made of its answer
   * @return null if that is no refusal
   */
  static @Nullable ZerohopException read(final Throwable failure) {
    final String text = failure.getMessage();
    if (text == null || !text.startsWith(MARK)) {
      return null;
    }
    final int colon = text.indexOf(':');
    Category category = Category.FALLBACK;
    for (final Category candidate : Category.values()) {
      if (text.startsWith(candidate + ":", MARK.length())) {
        category = candidate;
      }
    }
    return new ZerohopException(category, unescaped(text.substring(colon + 1)).stripTrailing());
  }

  private static String escaped(final String words) {
    final StringBuilder text = new StringBuilder(words.length());
    for (final char c : words.toCharArray()) {
      text.append(
          c < 0x80 && c != '\\'
              ? String.valueOf(c)
              : String.format(Locale.ROOT, "\\u%04x", (int) c));
    }
    return text.toString();
  }

  private static String unescaped(final String text) {
    return ESCAPED
        .matcher(text)
        .replaceAll(
            escape ->
                Matcher.quoteReplacement(
                    Character.toString(Integer.parseInt(escape.group(1), 16))));
  }

  /** That the other process is lost does not mean that the one which asks is. */
  private static Category categoryOf(final RuntimeException reason) {
    return reason instanceof ZerohopException known && known.category() != Category.FATAL
        ? known.category()
        : Category.FALLBACK;
  }
}
