package io.zerohop.spark.ui;

import io.zerohop.device.Message;
import io.zerohop.shuffle.block.Link;
import io.zerohop.shuffle.block.Path;
import io.zerohop.spark.report.Advice;
import io.zerohop.spark.ui.Summary.Reason;
import io.zerohop.spark.ui.UiSnapshot.AdviceLine;
import io.zerohop.spark.ui.UiSnapshot.ContactLine;
import io.zerohop.spark.ui.UiSnapshot.Pair;
import io.zerohop.spark.ui.UiSnapshot.Point;
import io.zerohop.spark.ui.UiSnapshot.Series;
import java.util.Comparator;
import java.util.EnumMap;
import java.util.List;
import java.util.Map;
import java.util.function.ToLongFunction;

/** The page, part by part: first whether shuffles are fast, then why not, then all numbers. */
final class PageContent {
  private static final int MAX_REASONS = 10;

  private PageContent() {}

  /** The content below Spark's header. */
  static String of(final UiSnapshot snapshot, final PageQuery query) {
    final Html page = new Html();
    page.raw(PageStyle.CSS).raw("<div class=\"zerohop\">");
    final Summary summary = Summary.of(snapshot);
    verdict(page, snapshot, summary);
    reasons(page, summary);
    advice(page, "zerohop-doctor", summary.problems());
    final List<Pair> pairs =
        snapshot.pairs().stream().filter(pair -> query.shows(pair.path())).toList();
    final Map<Link, Double> expected = expected(snapshot);
    LinkTable.render(page, pairs, expected);
    TimeLine.render(page, snapshot.rates(), MemoryTimeline.of(snapshot.memory(), TimeLine.MOMENTS));
    form(page, query);
    NodeMatrix.render(page, pairs, snapshot.nodes(), expected, query);
    pairs(page, pairs, query);
    ShuffleTable.render(page, snapshot, query);
    pools(page, snapshot, query);
    contacts(page, snapshot, query);
    checks(page, snapshot.advice());
    return page.raw("</div>").toString();
  }

  private static void verdict(final Html page, final UiSnapshot snapshot, final Summary summary) {
    if (snapshot.awaitsReports()) {
      page.raw(
          "<p id=\"zerohop-empty\">No executor has reported yet: reports begin with the first"
              + " task that writes or reads a shuffle through Zerohop.</p>");
    } else {
      page.raw("<div id=\"zerohop-verdict\" role=\"status\" class=\"verdict ");
      page.raw(summary.verdict() + "\"><strong>").text(summary.headline()).raw("</strong>");
      page.text(String.join(" ", summary.details())).raw("</div>");
      LinkTable.bar(page, summary);
    }
    if (snapshot.refused() > 0) {
      page.raw(
          "<p id=\"zerohop-refused\" class=\"note\">" + snapshot.refused() + " parts of reports");
      page.raw(
          " are left out: they are negative, too long or unknown, as no executor writes them.");
      page.raw("</p>");
    }
  }

  private static void reasons(final Html page, final Summary summary) {
    final List<Reason> reasons = summary.reasons();
    if (reasons.isEmpty()) {
      return;
    }
    page.raw("<h4>Why blocks took the fallback</h4><p class=\"note\">");
    page.text(
        "Fallback: Spark's own block transfer reads them. Bytes are from map statuses, which round"
            + " them. A shuffle counts in each of its reasons.");
    page.raw("</p><div class=\"scroll stack\">");
    final Head head = new Head("Bytes", "Blocks", "Shuffles", "Reason", "Code", "What to do");
    page.table("zerohop-reasons", head.columns);
    for (final Reason reason : reasons.subList(0, Math.min(MAX_REASONS, reasons.size()))) {
      page.raw("<tr>").raw(head.cell(0, "sorttable_customkey=\"" + reason.bytes() + "\""));
      page.text(reason.bytes() < 0 ? "not known" : Html.bytes(reason.bytes()));
      page.raw("</td>").raw(head.cell(1)).text("" + reason.blocks());
      page.raw("</td>").raw(head.cell(2)).text("" + reason.shuffles());
      page.raw("</td>").raw(head.cell(3)).text(reason.text());
      if (reason.texts() > 1) {
        page.text(" (and " + (reason.texts() - 1) + " like it)");
      }
      page.raw("</td>").raw(head.cell(4));
      Runbook.link(page, reason.code());
      page.raw("</td>").raw(head.cell(5));
      remedy(page, reason, summary.problems());
      page.raw("</td></tr>");
    }
    page.endTable().raw("</div>");
    if (reasons.size() > MAX_REASONS) {
      page.raw("<p class=\"note\">" + (reasons.size() - MAX_REASONS));
      page.raw(" further reasons are in the table of shuffles.</p>");
    }
  }

  /** Writes what to do: first what the doctor has found that the runbook's row leads to. */
  private static void remedy(
      final Html page, final Reason reason, final List<AdviceLine> problems) {
    final Runbook.Entry entry = Runbook.of(reason.code());
    if (entry != null) {
      for (final AdviceLine line : problems) {
        if (entry.related().contains(line.advice().code())) {
          page.raw("<div>The doctor found the cause, ");
          Runbook.link(page, line.advice().code());
          page.text(": " + line.advice().remedy() + ".").raw("</div>");
        }
      }
    }
    if (!reason.remedy().isEmpty()) {
      page.text(reason.remedy());
    } else if (entry != null) {
      Runbook.write(page, entry.remedy());
    }
  }

  /**
   * The columns of a table whose cells stand below one another in a narrow window, each with the
   * head of its column.
   */
  private record Head(String... columns) {
    String cell(final int column, final String... attributes) {
      return "<td data-head=\"" + columns[column] + "\" " + String.join(" ", attributes) + ">";
    }
  }

  private static void advice(final Html page, final String id, final List<AdviceLine> lines) {
    if (lines.isEmpty()) {
      return;
    }
    page.raw("<h4>What the doctor says</h4><div class=\"scroll stack\">");
    adviceTable(page, id, lines);
    page.raw("</div>");
  }

  private static void adviceTable(final Html page, final String id, final List<AdviceLine> lines) {
    final Head head = new Head("Verdict", "Check", "Found", "What to do", "Where");
    page.table(id, head.columns);
    for (final AdviceLine line : lines) {
      final Advice advice = line.advice();
      page.raw("<tr>").raw(head.cell(0, "class=\"" + color(advice.verdict()) + "\""));
      page.text(advice.verdict()).raw("</td>").raw(head.cell(1)).text(advice.check());
      page.raw("</td>").raw(head.cell(2)).text(found(advice) + " ");
      Runbook.link(page, advice.code());
      page.raw("</td>").raw(head.cell(3)).text(advice.remedy());
      page.raw("</td>").raw(head.cell(4, "sorttable_customkey=\"" + line.count() + "\""));
      page.text(where(line)).raw("</td></tr>");
    }
    page.endTable();
  }

  /** What was found, and where; the code by which the runbook explains it stands beside it. */
  private static String found(final Advice advice) {
    return Message.of(advice.what()).at(advice.where()).happened();
  }

  private static String color(final String verdict) {
    return switch (verdict) {
      case "fail" -> "r-bad";
      case "warn" -> "r-mid";
      case "ok" -> "r-ok";
      default -> "r-none";
    };
  }

  private static String where(final AdviceLine line) {
    final int more = line.count() - line.processes().size();
    return String.join(", ", line.processes()) + (more > 0 ? " and " + more + " more" : "");
  }

  private static Map<Link, Double> expected(final UiSnapshot snapshot) {
    final Map<Link, Double> expected = new EnumMap<>(Link.class);
    for (final Link link : Link.values()) {
      final long least = snapshot.expected().getOrDefault(link.label(), link.expected());
      if (least > 0) {
        expected.put(link, (double) least);
      }
    }
    return expected;
  }

  private static void form(final Html page, final PageQuery query) {
    page.raw("<form method=\"get\" id=\"zerohop-filter\"><label>Path <select name=\"path\">");
    option(page, "", "all", query);
    for (final Path path : Path.values()) {
      option(page, path.label(), LinkTable.name(path), query);
    }
    page.raw("</select></label> <label>Shuffle, stage or reason <input type=\"text\" name=\"q\"");
    page.raw(" value=\"").text(query.text()).raw("\" /></label>");
    page.raw(" <button type=\"submit\">Filter</button> <a href=\"?\">Show all</a></form>");
  }

  private static void option(
      final Html page, final String value, final String shown, final PageQuery query) {
    page.raw("<option value=\"" + value + "\"");
    page.raw(query.path().equals(value) ? " selected=\"selected\">" : ">");
    page.raw(shown).raw("</option>");
  }

  private static void pairs(final Html page, final List<Pair> pairs, final PageQuery query) {
    page.raw(query.unfolds("pairs") ? "<details open=\"open\">" : "<details>");
    page.raw("<summary>All pairs of executors</summary>");
    new PagedTable<Pair>("pairs")
        .column(
            "Reader",
            "",
            Comparator.comparing(Pair::reader, ExecutorOrder.INSTANCE),
            (to, pair) -> to.cell(pair.reader()))
        .column(
            "Owner",
            "",
            Comparator.comparing(Pair::owner, ExecutorOrder.INSTANCE),
            (to, pair) -> to.cell(pair.owner()))
        .column(
            "Link",
            "",
            Comparator.comparing(Summary::link),
            (to, pair) -> to.cell(LinkTable.name(Summary.link(pair))))
        .column(
            "Blocks",
            "",
            Comparator.comparingLong(Pair::blocks),
            (to, pair) -> to.number(pair.blocks()))
        .column(
            "Bytes", "", Comparator.comparingLong(Pair::bytes), (to, pair) -> to.size(pair.bytes()))
        .column(
            "Time in use",
            "Time in which blocks came, in slots of 10 ms",
            Comparator.comparingLong(Pair::busyMillis),
            (to, pair) -> to.cell(pair.busyMillis(), Html.duration(pair.busyMillis())))
        .column(
            "Rate",
            "While blocks came without a break",
            Comparator.comparingDouble(PageContent::rate),
            (to, pair) ->
                to.cell((long) rate(pair), Html.rate(pair.fullBytes(), pair.fullMillis())))
        .render(
            page,
            pairs.stream().sorted(Comparator.comparingLong(Pair::bytes).reversed()).toList(),
            query);
    page.raw("</details>");
  }

  private static double rate(final Pair pair) {
    return pair.fullMillis() <= 0 ? 0 : 1e3 * pair.fullBytes() / pair.fullMillis();
  }

  private static void pools(final Html page, final UiSnapshot snapshot, final PageQuery query) {
    page.raw("<h4>Pools, files and spills</h4>");
    if (snapshot.executorsLeftOut() > 0) {
      page.raw("<p class=\"note\">Without " + snapshot.executorsLeftOut());
      page.raw(" further executors.</p>");
    }
    final boolean gpu =
        snapshot.memory().stream().anyMatch(series -> TimeLine.hasGpu(series.points()));
    final PagedTable<Series> table =
        new PagedTable<Series>("pools")
            .column(
                "Executor",
                "",
                Comparator.comparing(Series::executorId, ExecutorOrder.INSTANCE),
                (to, series) -> to.cell(series.executorId()));
    if (gpu) {
      size(table, "GPU memory", "Held in GPU memory", Point::deviceUsed);
      size(table, "of", "Limit of the pool in GPU memory", Point::deviceLimit);
    }
    size(table, "Host memory", "Held in shared host memory", Point::hostUsed);
    size(table, "of", "Limit of the pool in host memory", Point::hostLimit);
    size(table, "Files", "Map outputs in files", Point::files);
    if (gpu) {
      size(table, "Overflowed to host", "Found no room in GPU memory", Point::overflowed);
      size(table, "Spilled to host", "Moved out of GPU memory", Point::spilledToHost);
    }
    size(table, "Spilled to files", "Moved out of host memory", Point::spilledToFiles);
    table.render(page, snapshot.memory(), query);
  }

  private static void size(
      final PagedTable<Series> table,
      final String title,
      final String tip,
      final ToLongFunction<Point> value) {
    final ToLongFunction<Series> last =
        series -> value.applyAsLong(series.points().get(series.points().size() - 1));
    table.column(
        title,
        tip,
        Comparator.comparingLong(last),
        (to, series) -> to.size(last.applyAsLong(series)));
  }

  private static void contacts(final Html page, final UiSnapshot snapshot, final PageQuery query) {
    page.raw(query.unfolds("contacts") ? "<details open=\"open\">" : "<details>");
    page.raw("<summary>First contacts (" + snapshot.contacts().size() + ")</summary>");
    if (snapshot.evictedContacts() > 0) {
      page.raw("<p class=\"note\">" + snapshot.evictedContacts() + " older ones are not kept.</p>");
    }
    new PagedTable<ContactLine>("contacts")
        .column(
            "Time",
            "",
            Comparator.comparingLong(ContactLine::timeMillis),
            (to, line) -> to.cell(line.timeMillis(), Times.clock(line.timeMillis())))
        .column(
            "Executor",
            "",
            Comparator.comparing(ContactLine::reader, ExecutorOrder.INSTANCE),
            (to, line) -> to.cell(line.reader()))
        .column(
            "Reads executor",
            "",
            Comparator.comparing(ContactLine::owner, ExecutorOrder.INSTANCE),
            (to, line) -> to.cell(line.owner()))
        .column(
            "How", "", Comparator.comparing(ContactLine::how), (to, line) -> to.cell(line.how()))
        .render(page, snapshot.contacts(), query);
    page.raw("</details>");
  }

  /** All that was looked at, folded away. */
  private static void checks(final Html page, final List<AdviceLine> all) {
    if (all.isEmpty()) {
      return;
    }
    page.raw("<details><summary>All that the doctor looked at (" + all.size() + ")</summary>");
    page.raw("<p class=\"note\">Settings and jars");
    page.raw(" of the driver, and limits of executors, which only say what is to be fixed. The");
    page.raw(" doctor itself looks at GPUs, UCX and rates, too (docs/doctor.md).</p>");
    page.raw("<div class=\"scroll stack\">");
    adviceTable(page, "zerohop-doctor-all", all);
    page.raw("</div></details>");
  }
}
