package io.zerohop.spark.ui;

import io.zerohop.spark.ui.UiSnapshot.Point;
import io.zerohop.spark.ui.UiSnapshot.Series;
import java.util.List;
import java.util.Locale;
import java.util.function.ToLongFunction;

/**
 * Where map outputs lie: a chart of all executors over time, whose lines differ by their dashes,
 * the same in numbers, and each executor as it is now.
 */
final class MemoryTable {
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
