package io.zerohop.spark.ui;

import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.time.Instant;
import java.time.ZoneId;
import java.time.format.DateTimeFormatter;
import java.util.Locale;

/** A piece of HTML that is also well-formed XML, under construction. Not thread safe. */
final class Html {
  /** Classes of a table, as Spark has them. */
  static final String TABLE = "table table-bordered table-sm table-striped";

  private static final DateTimeFormatter CLOCK =
      DateTimeFormatter.ofPattern("uuuu-MM-dd HH:mm:ss", Locale.ROOT)
          .withZone(ZoneId.systemDefault());

  private static final String[] UNITS = {"B", "KiB", "MiB", "GiB", "TiB", "PiB"};

  private final StringBuilder text = new StringBuilder();

  /** Markup of our own, as it is. */
  Html raw(final String markup) {
    text.append(markup);
    return this;
  }

  /** Text of anybody. */
  Html text(final String any) {
    text.append(escape(any));
    return this;
  }

  /** A heading, and a note below it. */
  Html heading(final String title, final String note) {
    raw("<h4>").text(title).raw("</h4><p class=\"note\">").text(note);
    return raw("</p>");
  }

  /** The head of a table that can be sorted by a click on a column. */
  Html table(final String id, final String... columns) {
    raw("<table id=\"" + id + "\" class=\"" + TABLE + " sortable\">");
    raw("<thead><tr>");
    for (final String column : columns) {
      raw("<th>").text(column).raw("</th>");
    }
    return raw("</tr></thead><tbody>");
  }

  Html endTable() {
    return raw("</tbody></table>");
  }

  /** A cell that is sorted by its text. */
  Html cell(final String any) {
    return raw("<td>").text(any).raw("</td>");
  }

  /** A cell that is sorted by a number, and shows it in other words. */
  Html cell(final long value, final String shown) {
    return raw("<td sorttable_customkey=\"" + value + "\">").text(shown).raw("</td>");
  }

  Html number(final long value) {
    return cell(value, Long.toString(value));
  }

  Html size(final long bytes) {
    return cell(bytes, bytes(bytes));
  }

  @Override
  public String toString() {
    return text.toString();
  }

  /** A size in words. */
  static String bytes(final long bytes) {
    double value = bytes;
    int unit = 0;
    while (value >= 1024 && unit < UNITS.length - 1) {
      value /= 1024;
      unit++;
    }
    return unit == 0 ? bytes + " B" : String.format(Locale.ROOT, "%.1f %s", value, UNITS[unit]);
  }

  /** Bytes a second in words; empty where no time is known. */
  static String rate(final long bytes, final long millis) {
    return millis <= 0 ? "" : bytes((long) (1e3 * bytes / millis)) + "/s";
  }

  /** A time in words, as on Spark's own pages. */
  static String duration(final long millis) {
    final double seconds = millis / 1e3;
    final double minutes = seconds / 60;
    final double hours = minutes / 60;
    return millis < 100
        ? millis + " ms"
        : seconds < 1
            ? words("%.1f s", seconds)
            : seconds < 60
                ? words("%.0f s", seconds)
                : minutes < 10
                    ? words("%.1f min", minutes)
                    : minutes < 60 ? words("%.0f min", minutes) : words("%.1f h", hours);
  }

  private static String words(final String format, final double value) {
    return String.format(Locale.ROOT, format, value);
  }

  static String escape(final String any) {
    final StringBuilder safe = new StringBuilder(any.length() + 16);
    any.codePoints().forEach(point -> escape(safe, point));
    return safe.toString();
  }

  private static void escape(final StringBuilder safe, final int point) {
    switch (point) {
      case '<' -> safe.append("&lt;");
      case '>' -> safe.append("&gt;");
      case '&' -> safe.append("&amp;");
      case '"' -> safe.append("&quot;");
      case '\'' -> safe.append("&#39;");
      default -> {
        // XML has no way to write control characters and lone surrogates.
        final boolean writable =
            point >= ' '
                && (point < 0xD800 || point > 0xDFFF)
                && point != 0xFFFE
                && point != 0xFFFF;
        safe.appendCodePoint(writable ? point : ' ');
      }
    }
  }

  /** Returns the text of a file of the jar; empty if the jar lacks it. */
  static String resource(final String name) {
    try (InputStream in = Html.class.getResourceAsStream(name)) {
      return in == null ? "" : new String(in.readAllBytes(), StandardCharsets.UTF_8);
    } catch (final IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  /** A moment in words, in this process' time zone. */
  static String clock(final long millis) {
    return CLOCK.format(Instant.ofEpochMilli(millis));
  }

  /**
   * The style of the tab's pages: colours by name, for Spark's light and, from 4.2 on, its dark
   * mode. Text has a contrast of 4.5 or more to what it stands on.
   */
  static final class PageStyle {
    static final String CSS = "<style>\n" + resource("tab.css") + "</style>\n";

    private PageStyle() {}

    static String color(final io.zerohop.shuffle.block.Link link) {
      return "var(--" + link.label().replace('.', '-') + ")";
    }
  }
}
