package io.zerohop.spark.ui;

import io.zerohop.device.Message;
import io.zerohop.shuffle.block.BlockPath;
import io.zerohop.shuffle.block.Link;
import io.zerohop.spark.metrics.Metric;
import io.zerohop.spark.report.Advice;
import io.zerohop.spark.report.Figure;
import io.zerohop.spark.ui.Html.PageStyle;
import io.zerohop.spark.ui.Summary.Reason;
import io.zerohop.spark.ui.UiSnapshot.AdviceLine;
import io.zerohop.spark.ui.UiSnapshot.ContactLine;
import io.zerohop.spark.ui.UiSnapshot.Pair;
import io.zerohop.spark.ui.UiSnapshot.Series;
import io.zerohop.spark.ui.UiSnapshot.Shuffle;
import java.util.Comparator;
import java.util.EnumMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;

/** The page, part by part: first whether shuffles are fast, then why not, then all numbers. */
final class PageContent {
  private static final int MAX_REASONS = 10;

  private PageContent() {}

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
    TimeLine.render(page, snapshot);
    form(page, query);
    NodeMatrix.render(page, pairs, snapshot.nodes(), expected, query);
    pairs(page, pairs, query);
    ShuffleTable.render(page, snapshot, query);
    pools(page, snapshot, query);
    NodeKeepers.render(page, snapshot.keepers(), query);
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
          " are left out: they are negative, too long, unknown or of another type,"
              + " as no executor writes them.");
      page.raw("</p>");
    }
  }

  private static void reasons(final Html page, final Summary summary) {
    final List<Reason> reasons = summary.reasons();
    if (reasons.isEmpty()) {
      return;
    }
    page.heading(
        "Why blocks took the fallback",
        "Fallback: Spark's own block transfer reads them. Bytes are Spark's estimates. A shuffle"
            + " with several reasons is counted in each of them.");
    page.raw("<div class=\"scroll stack\">");
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
    for (final BlockPath path : BlockPath.values()) {
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
        .executor("Reader", Pair::reader)
        .executor("Owner", Pair::owner)
        .column(
            "Link",
            "",
            Comparator.comparing(Summary::link),
            (to, pair) -> to.cell(LinkTable.name(Summary.link(pair))))
        .number("Blocks", "", Pair::blocks)
        .size("Bytes", "", Pair::bytes)
        .number(
            "Time in use",
            "Time in which blocks came, in slots of 10 ms",
            Pair::busyMillis,
            (to, millis) -> to.cell(millis, Html.duration(millis)))
        .column(
            "Rate",
            "While blocks came without a break",
            Comparator.comparingDouble(Pair::rate),
            (to, pair) ->
                to.cell((long) pair.rate(), Html.rate(pair.fullBytes(), pair.fullMillis())))
        .render(
            page,
            pairs.stream().sorted(Comparator.comparingLong(Pair::bytes).reversed()).toList(),
            query);
    page.raw("</details>");
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
        new PagedTable<Series>("pools").executor("Executor", Series::executorId);
    for (final Figure figure : Figure.values()) {
      if (gpu || figure.metric().owner() != Metric.Owner.GPU) {
        table.size(figure.title(), figure.tip(), one -> one.last().get(figure));
      }
    }
    table.render(page, snapshot.memory(), query);
  }

  private static void contacts(final Html page, final UiSnapshot snapshot, final PageQuery query) {
    page.raw(query.unfolds("contacts") ? "<details open=\"open\">" : "<details>");
    page.raw("<summary>First contacts (" + snapshot.contacts().size() + ")</summary>");
    if (snapshot.evictedContacts() > 0) {
      page.raw("<p class=\"note\">" + snapshot.evictedContacts() + " older ones are not kept.</p>");
    }
    new PagedTable<ContactLine>("contacts")
        .time("Time", "", ContactLine::timeMillis)
        .executor("Executor", ContactLine::reader)
        .executor("Reads executor", ContactLine::owner)
        .text("How", "", ContactLine::how)
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

  /** The shuffles: stages, what came by which path, how long readers waited, why fallbacks. */
  private static final class ShuffleTable {
    private static final int NANOS_PER_MILLI = 1_000_000;

    private static final PagedTable<Shuffle> TABLE = table();

    private ShuffleTable() {}

    private static PagedTable<Shuffle> table() {
      final PagedTable<Shuffle> table =
          new PagedTable<Shuffle>("shuffles")
              .number("Shuffle", "", Shuffle::shuffleId)
              .column(
                  "Written by stages",
                  "",
                  Comparator.comparing(shuffle -> first(shuffle.writers())),
                  (page, shuffle) -> stages(page, shuffle.writers()))
              .column(
                  "Read by stages",
                  "",
                  Comparator.comparing(shuffle -> first(shuffle.readers())),
                  (page, shuffle) -> stages(page, shuffle.readers()))
              .number("Blocks", "Blocks that were read", shuffle -> sum(shuffle.blocks()));
      for (final BlockPath path : BlockPath.values()) {
        table.size(
            LinkTable.name(path),
            LinkTable.meaning(path) + "; bytes, as metric " + path.label() + ".bytes",
            shuffle -> shuffle.bytes().getOrDefault(path.label(), 0L));
      }
      return table
          .number(
              "Fetch wait time",
              "Of all tasks together",
              Shuffle::waitNanos,
              (page, nanos) -> page.cell(nanos, Html.duration(nanos / NANOS_PER_MILLI)))
          .column(
              "Why fallback",
              "Blocks that took the fallback, and why",
              Comparator.comparingLong(shuffle -> sum(shuffle.fallbacks())),
              ShuffleTable::fallbacks);
    }

    private static int first(final List<Integer> stages) {
      return stages.isEmpty() ? -1 : stages.get(0);
    }

    private static long sum(final Map<String, Long> counts) {
      return counts.values().stream().mapToLong(Long::longValue).sum();
    }

    static void render(final Html page, final UiSnapshot snapshot, final PageQuery query) {
      final List<Shuffle> found =
          snapshot.shuffles().stream().filter(shuffle -> matches(shuffle, query)).toList();
      final long evicted = snapshot.evictedShuffles();
      page.heading(
          "Shuffles",
          found.size()
              + " of "
              + snapshot.shuffles().size()
              + " shuffles"
              + (evicted == 0 ? "" : "; " + evicted + " that were used longer ago are not kept")
              + ".");
      TABLE.render(page, found, query);
    }

    private static boolean matches(final Shuffle shuffle, final PageQuery query) {
      if (!query.path().isEmpty() && shuffle.bytes().getOrDefault(query.path(), 0L) == 0) {
        return false;
      }
      final String text = query.text();
      return text.isEmpty()
          || String.valueOf(shuffle.shuffleId()).equals(text)
          || shuffle.writers().stream().anyMatch(stage -> text.equals(stage.toString()))
          || shuffle.readers().stream().anyMatch(stage -> text.equals(stage.toString()))
          || shuffle.fallbacks().keySet().stream()
              .map(reason -> reason + " " + shuffle.code(reason))
              .anyMatch(reason -> reason.toLowerCase(Locale.ROOT).contains(text));
    }

    private static void fallbacks(final Html page, final Shuffle shuffle) {
      page.raw("<td>");
      shuffle
          .fallbacks()
          .forEach(
              (reason, count) -> {
                page.raw("<div>").text(count + " blocks: " + reason + " ");
                Runbook.link(page, shuffle.code(reason));
                page.raw("</div>");
              });
      page.raw("</td>");
    }

    private static void stages(final Html page, final List<Integer> stages) {
      page.raw("<td>");
      for (final int stage : stages) {
        page.raw("<a href=\"../stages/stage/?id=" + stage + "&amp;attempt=0\">" + stage + "</a> ");
      }
      page.raw("</td>");
    }
  }
}
