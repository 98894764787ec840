package io.zerohop.spark.ui;

import io.zerohop.device.Message;
import io.zerohop.shuffle.block.Path;
import io.zerohop.spark.report.Advice;
import io.zerohop.spark.ui.UiSnapshot.AdviceLine;
import io.zerohop.spark.ui.UiSnapshot.Point;
import io.zerohop.spark.ui.UiSnapshot.Series;
import java.util.List;
import java.util.Locale;
import java.util.function.ToLongFunction;

/** The page, part by part. */
final class PageContent {
  private static final String STYLE =
      """
      <style>
        .zerohop td, .zerohop th { vertical-align: top; }
        .zerohop .heat { width: auto; }
        .zerohop .heat td { min-width: 7em; }
        .zerohop .heat .l1 { background: #eef3f8; color: #000; }
        .zerohop .heat .l2 { background: #cfe0ee; color: #000; }
        .zerohop .heat .l3 { background: #9cc3e0; color: #000; }
        .zerohop .heat .l4 { background: #5f9fcc; color: #000; }
        .zerohop svg { max-width: 100%; }
        .zerohop .note { color: #555; }
      </style>
      """;

  private PageContent() {}

  /** The content below Spark's header. */
  static String of(final UiSnapshot snapshot, final PageQuery query) {
    final Html page = new Html();
    page.raw(STYLE).raw("<div class=\"zerohop\">");
    if (snapshot.awaitsReports()) {
      page.raw(
          "<p id=\"zerohop-empty\">No executor has reported yet: reports begin with the first"
              + " task that writes or reads a shuffle through Zerohop.</p>");
    }
    if (snapshot.refused() > 0) {
      page.raw(
          "<p id=\"zerohop-refused\" class=\"note\">" + snapshot.refused() + " parts of reports");
      page.raw(
          " are left out: they are negative, too long or unknown, as no executor writes them.");
      page.raw("</p>");
    }
    AdviceTable.render(page, snapshot.advice());
    form(page, query);
    HeatMap.render(page, snapshot.pairs(), query);
    ShuffleTable.render(page, snapshot, query);
    MemoryTable.render(page, snapshot.memory(), snapshot.executorsLeftOut());
    contacts(page, snapshot);
    return page.raw("</div>").toString();
  }

  private static void form(final Html page, final PageQuery query) {
    page.raw("<form method=\"get\" id=\"zerohop-filter\"><label>Path <select name=\"path\">");
    option(page, "", "all", query);
    for (final Path path : Path.values()) {
      option(page, path.label(), path.label(), query);
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

  private static void contacts(final Html page, final UiSnapshot snapshot) {
    page.raw("<h4>First contacts</h4>");
    if (snapshot.evictedContacts() > 0) {
      page.raw("<p class=\"note\">" + snapshot.evictedContacts() + " older ones are not kept.</p>");
    }
    page.table("zerohop-contacts", "Time", "Executor", "Reads executor", "How");
    for (final UiSnapshot.ContactLine line : snapshot.contacts()) {
      page.raw("<tr>").cell(line.timeMillis(), Times.clock(line.timeMillis()));
      page.cell(line.reader()).cell(line.owner()).cell(line.how()).raw("</tr>");
    }
    page.endTable();
  }

  /** What the doctor would say: what is to be mended in sight, all else folded away. */
  private static final class AdviceTable {
    private static final List<String> WORST_FIRST = List.of("fail", "warn");

    private AdviceTable() {}

    static void render(final Html page, final List<AdviceLine> all) {
      if (all.isEmpty()) {
        return;
      }
      page.raw("<h4>What the doctor says</h4>");
      final List<AdviceLine> mend =
          WORST_FIRST.stream()
              .flatMap(
                  verdict -> all.stream().filter(line -> line.advice().verdict().equals(verdict)))
              .toList();
      if (mend.isEmpty()) {
        page.raw("<p class=\"note\">Nothing is to be mended in what was looked at.</p>");
      } else {
        table(page, "zerohop-doctor", mend);
      }
      page.raw(
          "<details><summary>All that was looked at</summary><p class=\"note\">Settings and jars");
      page.raw(" of the driver, and limits of executors, which only say what is to be mended. The");
      page.raw(" doctor itself looks at GPUs, UCX and rates, too (docs/doctor.md).</p>");
      table(page, "zerohop-doctor-all", all);
      page.raw("</details>");
    }

    private static void table(final Html page, final String id, final List<AdviceLine> lines) {
      page.table(id, "Verdict", "Check", "Found", "What mends it", "Where");
      for (final AdviceLine line : lines) {
        final Advice advice = line.advice();
        page.raw("<tr>").cell(advice.verdict()).cell(advice.check()).cell(found(advice));
        page.cell(advice.remedy()).cell(line.count(), where(line)).raw("</tr>");
      }
      page.endTable();
    }

    /** What was found, where, and the code by which the runbook explains it. */
    private static String found(final Advice advice) {
      return new Message(advice.code(), advice.what(), advice.where(), "", "").text();
    }

    private static String where(final AdviceLine line) {
      final int more = line.count() - line.processes().size();
      return String.join(", ", line.processes()) + (more > 0 ? " and " + more + " more" : "");
    }
  }

  /**
   * Where map outputs lie: a chart of all executors over time, whose lines differ by their dashes,
   * the same in numbers, and each executor as it is now.
   */
  private static final class MemoryTable {
    private static final int WIDTH = 720;
    private static final int HEIGHT = 160;
    private static final int MOMENTS = 60;
    private static final int ROWS = 20;

    private MemoryTable() {}

    static void render(final Html page, final List<Series> memory, final long leftOut) {
      page.raw("<h4>Pools, files and spills</h4>");
      if (leftOut > 0) {
        page.raw("<p class=\"note\">Without " + leftOut + " further executors.</p>");
      }
      final List<Point> time = MemoryTimeline.of(memory, MOMENTS);
      if (!time.isEmpty()) {
        chart(page, time);
        overTime(page, MemoryTimeline.of(memory, ROWS));
      }
      page.table(
          "zerohop-memory",
          "Executor",
          "GPU memory",
          "of",
          "Host memory",
          "of",
          "Files",
          "Overflowed to host",
          "Spilled to host",
          "Spilled to files");
      for (final Series one : memory) {
        final Point now = one.points().get(one.points().size() - 1);
        page.raw("<tr>").cell(one.executorId());
        page.size(now.deviceUsed()).size(now.deviceLimit());
        page.size(now.hostUsed()).size(now.hostLimit()).size(now.files());
        spills(page, now).raw("</tr>");
      }
      page.endTable();
    }

    private static Html spills(final Html page, final Point point) {
      page.size(point.overflowed()).size(point.spilledToHost());
      return page.size(point.spilledToFiles());
    }

    private static void overTime(final Html page, final List<Point> time) {
      page.raw("<details><summary>In numbers</summary>");
      page.table(
          "zerohop-timeline",
          "Time",
          "GPU memory",
          "Host memory",
          "Files",
          "Overflowed to host",
          "Spilled to host",
          "Spilled to files");
      for (final Point point : time) {
        page.raw("<tr>").cell(point.timeMillis(), Times.clock(point.timeMillis()));
        page.size(point.deviceUsed()).size(point.hostUsed()).size(point.files());
        spills(page, point).raw("</tr>");
      }
      page.endTable().raw("</details>");
    }

    private static void chart(final Html page, final List<Point> time) {
      final long most =
          time.stream()
              .mapToLong(p -> Math.max(p.files(), Math.max(p.hostUsed(), p.deviceUsed())))
              .max()
              .orElse(0);
      final Point last = time.get(time.size() - 1);
      page.raw("<svg xmlns=\"http://www.w3.org/2000/svg\" role=\"img\" aria-label=\"");
      page.text("Bytes in GPU memory, host memory and files over time");
      page.raw(
          "\" width=\"" + (WIDTH + 20) + "\" height=\"" + (HEIGHT + 30) + "\" viewBox=\"-10 -10 ");
      page.raw((WIDTH + 20) + " " + (HEIGHT + 30) + "\" font-size=\"11\">");
      page.raw("<rect width=\"" + WIDTH + "\" height=\"" + HEIGHT + "\" fill=\"none\"");
      page.raw(" stroke=\"#999\"/><text x=\"4\" y=\"12\">").text(Html.bytes(most)).raw("</text>");
      page.raw("<text y=\"" + (HEIGHT + 14) + "\">").text(Times.clock(time.get(0).timeMillis()));
      page.raw("</text><text text-anchor=\"end\" x=\"" + WIDTH + "\" y=\"" + (HEIGHT + 14) + "\">");
      page.text(Times.clock(last.timeMillis())).raw("</text>");
      line(page, time, most, Point::deviceUsed, "#0b5394", "");
      line(page, time, most, Point::hostUsed, "#38761d", "8 4");
      line(page, time, most, Point::files, "#990000", "2 3");
      page.raw("</svg><p>");
      legend(page, "#0b5394", "", "GPU memory " + Html.bytes(last.deviceUsed()));
      legend(page, "#38761d", "8 4", "host memory " + Html.bytes(last.hostUsed()));
      legend(page, "#990000", "2 3", "files " + Html.bytes(last.files()));
      page.raw("</p>");
    }

    private static void line(
        final Html page,
        final List<Point> time,
        final long most,
        final ToLongFunction<Point> value,
        final String color,
        final String dashes) {
      page.raw("<polyline fill=\"none\" stroke-width=\"2\" stroke=\"" + color + "\"");
      page.raw(" stroke-dasharray=\"" + dashes + "\" points=\"");
      for (int i = 0; i < time.size(); i++) {
        final double x = time.size() == 1 ? 0 : (double) WIDTH * i / (time.size() - 1);
        final double share = most == 0 ? 0 : (double) value.applyAsLong(time.get(i)) / most;
        page.raw(String.format(Locale.ROOT, "%.1f,%.1f ", x, HEIGHT * (1 - share)));
      }
      page.raw("\"/>");
    }

    private static void legend(
        final Html page, final String color, final String dashes, final String text) {
      page.raw("<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"36\" height=\"10\">");
      page.raw("<line x1=\"0\" y1=\"5\" x2=\"34\" y2=\"5\" stroke-width=\"2\" stroke=\"" + color);
      page.raw("\" stroke-dasharray=\"" + dashes + "\"/></svg> ").text(text).raw("&#160;&#160; ");
    }
  }
}
