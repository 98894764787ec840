package io.zerohop.spark.ui;

import io.zerohop.spark.ui.Html.PageStyle;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.jspecify.annotations.Nullable;

/**
 * The rows of docs/runbook.md by code, from the copy in the jar, so that the tab has them without
 * other documentation. Thread safe.
 */
final class Runbook {
  /** Where the tab shows it. */
  static final String PAGE = "runbook";

  private static final String RESOURCE = "/META-INF/zerohop/runbook.md";
  private static final Pattern ROW =
      Pattern.compile(
          "\\| <a id=\"zh-\\d+\"></a>(\\S+) \\| (.*?) \\| (.*?) \\| (.*?) \\|",
          Pattern.CASE_INSENSITIVE);
  private static final Pattern MARK = Pattern.compile("`([^`]*)`|\\[([^]]*)]\\([^)]*\\)");

  /** A link from a row to another one. */
  private static final Pattern OTHER = Pattern.compile("\\[([^]]*)]\\(#");

  private static final Map<String, Entry> ENTRIES = read();

  private Runbook() {}

  /**
   * A code's row, as Markdown.
   *
   * @param related other codes that the remedy leads to
   */
  record Entry(String means, String costs, String remedy, List<String> related) {}

  private static Map<String, Entry> read() {
    final Map<String, Entry> entries = new LinkedHashMap<>();
    for (final String line : Html.resource(RESOURCE).split("\n")) {
      final Matcher row = ROW.matcher(line.trim());
      if (row.matches()) {
        entries.put(
            row.group(1), new Entry(row.group(2), row.group(3), row.group(4), codes(row.group(4))));
      }
    }
    return entries;
  }

  private static List<String> codes(final String markdown) {
    return OTHER.matcher(markdown).results().map(found -> found.group(1)).toList();
  }

  /** Returns what it says of a code; null if it does not know it. */
  static @Nullable Entry of(final String code) {
    return ENTRIES.get(code);
  }

  static Map<String, Entry> all() {
    return ENTRIES;
  }

  /** Writes a text of the page: its code as such, and of its links the words. */
  static void write(final Html page, final String markdown) {
    final Matcher mark = MARK.matcher(markdown);
    int at = 0;
    while (mark.find()) {
      page.text(markdown.substring(at, mark.start()));
      if (mark.group(1) != null) {
        page.raw("<code>").text(mark.group(1)).raw("</code>");
      } else {
        page.text(mark.group(2));
      }
      at = mark.end();
    }
    page.text(markdown.substring(at));
  }

  /** Writes a code, as a link to what is said of it; a code that nobody knows is text only. */
  static void link(final Html page, final String code) {
    if (ENTRIES.containsKey(code)) {
      page.raw("<a class=\"code\" href=\"" + PAGE + "/#" + code.toLowerCase(Locale.ROOT) + "\">");
      page.text(code).raw("</a>");
    } else {
      page.text(code);
    }
  }

  static String page() {
    final Html page = new Html();
    page.raw(PageStyle.CSS)
        .raw("<div class=\"zerohop\"><p><a href=\"../\">Back to the tab</a></p>");
    page.raw("<div class=\"scroll\">")
        .table("zerohop-runbook", "Code", "What it means", "What it costs", "What to do");
    ENTRIES.forEach(
        (code, entry) -> {
          page.raw("<tr id=\"" + code.toLowerCase(Locale.ROOT) + "\"><td>").text(code);
          for (final String part : List.of(entry.means(), entry.costs(), entry.remedy())) {
            page.raw("</td><td>");
            write(page, part);
          }
          page.raw("</td></tr>");
        });
    return page.endTable().raw("</div></div>").toString();
  }
}
