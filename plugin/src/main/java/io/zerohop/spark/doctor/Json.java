package io.zerohop.spark.doctor;

import java.math.BigDecimal;
import java.math.MathContext;
import java.util.ArrayDeque;
import java.util.Deque;
import java.util.Locale;

/**
 * Writes JSON text. The jar has to run without Spark, and so without a library for it. Not thread
 * safe.
 */
public final class Json {
  private static final int FIRST_PRINTABLE = 0x20;
  private static final int DIGITS = 4;

  private final StringBuilder text = new StringBuilder();

  /** What ends each open object or array, the innermost first. */
  private final Deque<Character> ends = new ArrayDeque<>();

  /** Begins an object. */
  public Json object() {
    return open('{', '}');
  }

  /** Begins an array. */
  public Json array() {
    return open('[', ']');
  }

  private Json open(final char begin, final char end) {
    separate();
    text.append(begin);
    ends.push(end);
    return this;
  }

  /** Ends the innermost object or array. */
  public Json end() {
    text.append(ends.pop());
    return this;
  }

  /** The name of the value that follows. */
  public Json name(final String name) {
    separate();
    quote(name);
    text.append(':');
    return this;
  }

  /** A text. */
  public Json value(final String value) {
    separate();
    quote(value);
    return this;
  }

  /** With one decimal, since what is measured is not known better. */
  public Json value(final double value) {
    separate();
    text.append(String.format(Locale.ROOT, "%.1f", value));
    return this;
  }

  /** A whole number. */
  public Json value(final long value) {
    separate();
    text.append(value);
    return this;
  }

  /** With as many digits as a measurement has. */
  public Json significant(final double value) {
    separate();
    text.append(number(value));
    return this;
  }

  /** Four digits that count, and no exponent. */
  public static String number(final double value) {
    return BigDecimal.valueOf(value)
        .round(new MathContext(DIGITS))
        .stripTrailingZeros()
        .toPlainString();
  }

  private void separate() {
    final char last = text.length() == 0 ? '[' : text.charAt(text.length() - 1);
    if (last != '{' && last != '[' && last != ':') {
      text.append(',');
    }
  }

  private void quote(final String value) {
    text.append('"');
    for (final char c : value.toCharArray()) {
      if (c == '"' || c == '\\') {
        text.append('\\').append(c);
      } else if (c < FIRST_PRINTABLE) {
        text.append(String.format(Locale.ROOT, "\\u%04x", (int) c));
      } else {
        text.append(c);
      }
    }
    text.append('"');
  }

  @Override
  public String toString() {
    return text.toString();
  }
}
