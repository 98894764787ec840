package io.zerohop.spark.ui;

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

  /** A moment in words, in this process' time zone. */
  static String clock(final long millis) {
    return CLOCK.format(Instant.ofEpochMilli(millis));
  }

  /**
   * The style of the tab's pages: colours by name, for Spark's light and, from 4.2 on, its dark
   * mode. Text has a contrast of 4.5 or more to what it stands on.
   */
  static final class PageStyle {
    static final String CSS =
        """
        <style>
          .zerohop { --note: #555; --link: #0068a5; --line: #8a8f94; --head: #f4f5f6; --base: #fff;
            --ok: #e4f4e7; --ok-text: #0b3d17; --mid: #fff6d6; --mid-text: #4a3300;
            --mid2: #ffe2ab; --mid2-text: #432c00; --mid3: #ffc58f; --mid3-text: #3d2200;
            --bad: #fbc9cd; --bad-text: #5c0a11; --none: #eef1f4; --none-text: #212529;
            --local: #2e7d32; --peer-gpu: #00695c; --peer-nvlink: #0277bd; --peer-pcie: #283593;
            --peer-host: #5e35b1; --peer: #5e35b1; --ucx: #8d6e00; --sent: #bf5b00;
            --staged: #c62828; --gpu: #0b5394; --host: #38761d; --files: #990000; }
          [data-bs-theme="dark"] .zerohop { --note: #b6bdc4; --link: #7fb6ff; --line: #868e96; --head: #2b3035;
            --base: #212529;
            --ok: #12361d; --ok-text: #d3f3dc; --mid: #38310f; --mid-text: #ffeab0;
            --mid2: #553a00; --mid2-text: #ffe3b0; --mid3: #6e3600; --mid3-text: #ffdcbd;
            --bad: #6a1016; --bad-text: #ffd9dc; --none: #2b3035; --none-text: #dee2e6;
            --local: #66bb6a; --peer-gpu: #4db6ac; --peer-nvlink: #4fc3f7; --peer-pcie: #9fa8da;
            --peer-host: #b39ddb; --peer: #b39ddb; --ucx: #ffd54f; --sent: #ffa95c;
            --staged: #ef7a7a; --gpu: #7fb8ea; --host: #8fce7a; --files: #f29b9b; }
          .zerohop h4 { margin-top: 1.2rem; }
          .zerohop td, .zerohop th { vertical-align: top; }
          .zerohop a, .zerohop a:not([href]):not([class]) { color: var(--link); }
          .zerohop code { color: inherit; }
          .zerohop small { font-weight: normal; }
          .zerohop .stack td:first-child, .zerohop #zerohop-links td { white-space: nowrap; }
          .zerohop .note { color: var(--note); }
          .zerohop .code { white-space: nowrap; }
          .zerohop .scroll { overflow: auto; max-width: 100%; }
          .zerohop .box { max-height: 34rem; }
          .zerohop .verdict { border-left: .5rem solid; padding: .6rem .9rem; margin: .5rem 0; }
          .zerohop .verdict strong { font-size: 1.25rem; display: block; }
          .zerohop .FAST, .zerohop .r-ok { background: var(--ok); color: var(--ok-text); }
          .zerohop .LOOK, .zerohop .r-mid { background: var(--mid); color: var(--mid-text); }
          .zerohop .r-mid2 { background: var(--mid2); color: var(--mid2-text); }
          .zerohop .r-mid3 { background: var(--mid3); color: var(--mid3-text); }
          .zerohop .SLOW, .zerohop .r-bad { background: var(--bad); color: var(--bad-text); }
          .zerohop .NONE, .zerohop .r-none { background: var(--none); color: var(--none-text); }
          .zerohop .bar { display: flex; height: 1.6rem; gap: 2px; margin: .4rem 0; }
          .zerohop .bar span { min-width: 3px; }
          .zerohop .legend { display: flex; flex-wrap: wrap; gap: .1rem 1.4rem; margin: 0 0 .6rem;
            padding: 0; list-style: none; }
          .zerohop .legend i, .zerohop .chip { display: inline-block; width: .8rem; height: .8rem;
            margin-right: .35rem; }
          .zerohop #zerohop-shades i { outline: 1px solid var(--line); }
          .zerohop h5 { font-size: 1rem; margin: .6rem 0 .2rem; }
          .zerohop .pager { display: block; margin: .3rem 0; }
          .zerohop .pager input { width: 4rem; }
          .zerohop .matrix { width: auto; border-collapse: separate; border-spacing: 1px; }
          .zerohop .matrix td { min-width: 6.5rem; white-space: nowrap; }
          .zerohop .matrix thead th { position: sticky; top: 0; background: var(--head);
            z-index: 1; white-space: nowrap; }
          .zerohop .matrix tbody th { position: sticky; left: 0; background: var(--head);
            white-space: nowrap; }
          .zerohop .matrix thead th:first-child { left: 0; z-index: 2; }
          .zerohop .chart { display: grid; column-gap: .4rem; margin-bottom: .8rem;
            grid-template: 8.5rem 1.4rem / 5.5rem minmax(0, 1fr) 6.5rem; font-size: .8rem; }
          .zerohop .chart svg { width: 100%; height: 100%; shape-rendering: crispEdges;
            grid-area: 1 / 2; }
          .zerohop .grid { stroke: var(--line); stroke-opacity: .45; fill: none; }
          .zerohop .values, .zerohop .names, .zerohop .times { position: relative; }
          .zerohop .values { grid-area: 1 / 1; } .zerohop .names { grid-area: 1 / 3; }
          .zerohop .times { grid-area: 2 / 2; }
          .zerohop .chart span { position: absolute; line-height: 1; white-space: nowrap; }
          .zerohop .values span { right: 0; transform: translateY(50%); }
          .zerohop .times span { top: .3rem; transform: translateX(-50%); }
          .zerohop summary { cursor: pointer; }
          /* Spark's buttons for the top and the end of a page lie on cells. */
          .scroll-btn-container { display: none; }
          @media (max-width: 600px) {
            .zerohop td, .zerohop th { font-size: .8rem; padding: .2rem; min-width: 3.2rem; }
            .zerohop #zerohop-links th { min-width: 5.5rem; }
            .zerohop .chart { grid-template-columns: 4.6rem minmax(0, 1fr) 1.2rem; }
            .zerohop .names { display: none; }
            .zerohop .stack thead { display: none; }
            .zerohop .stack td { display: block; position: relative; padding-left: 6.2rem;
              min-height: 1.6rem; font-size: .9rem; overflow-wrap: anywhere; }
            .zerohop .stack td::before { content: attr(data-head); position: absolute; left: .3rem;
              width: 5.7rem; font-weight: bold; } }
        </style>
        """;

    private PageStyle() {}

    static String color(final io.zerohop.shuffle.block.Link link) {
      return "var(--" + link.label().replace('.', '-') + ")";
    }
  }
}
