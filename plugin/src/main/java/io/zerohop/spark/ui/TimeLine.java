package io.zerohop.spark.ui;

import io.zerohop.shuffle.block.Link;
import io.zerohop.spark.ui.UiSnapshot.Point;
import io.zerohop.spark.ui.UiSnapshot.Rate;
import java.util.EnumMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.function.ToLongFunction;

/**
 * A chart over time: bytes a second by link, stacked, and below it the contents of pools and files.
 * Lines differ by their dashes, too.
 */
final class TimeLine {
  /** Moments of the pools. */
  static final int MOMENTS = 60;

  private static final int WIDTH = 900;
  private static final int RATES = 120;
  private static final int POOLS = 110;
  private static final int GAP = 26;

  private final Html page;
  private final List<Rate> rates;
  private final List<Point> pools;
  private final long begin;
  private final long end;

  private TimeLine(final Html page, final List<Rate> rates, final List<Point> pools) {
    this.page = page;
    this.rates = rates;
    this.pools = pools;
    final Rate last = rates.isEmpty() ? null : rates.get(rates.size() - 1);
    final long firstRate = rates.isEmpty() ? Long.MAX_VALUE : rates.get(0).timeMillis();
    final long lastRate = last == null ? 0 : last.timeMillis() + last.millis();
    final long firstPool = pools.isEmpty() ? Long.MAX_VALUE : pools.get(0).timeMillis();
    final long lastPool = pools.isEmpty() ? 0 : pools.get(pools.size() - 1).timeMillis();
    this.begin = Math.min(firstRate, firstPool);
    this.end = Math.max(begin + 1, Math.max(lastRate, lastPool));
  }

  /** Writes it, if there is anything to show. */
  static void render(final Html page, final List<Rate> rates, final List<Point> pools) {
    if (!rates.isEmpty() || !pools.isEmpty()) {
      new TimeLine(page, rates, pools).draw();
    }
  }

  private void draw() {
    final int height = RATES + GAP + POOLS + GAP;
    page.raw("<h4>Over time</h4><div class=\"scroll\">");
    page.raw(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" role=\"img\" id=\"zerohop-time\" class=\"chart\"");
    page.raw(" aria-label=\"")
        .text("Bytes a second by link, and bytes in pools and files, over time");
    page.raw(
        "\" width=\"" + (WIDTH + 20) + "\" height=\"" + (height + 10) + "\" viewBox=\"-10 -10 ");
    page.raw((WIDTH + 20) + " " + (height + 10) + "\" font-size=\"12\">");
    final Map<Link, Long> seen = rates();
    pools(RATES + GAP);
    text(0, height - 12, "start", Times.clock(begin));
    text(WIDTH, height - 12, "end", Times.clock(end));
    page.raw("</svg></div><ul class=\"legend\">");
    seen.forEach(
        (link, bytes) -> {
          page.raw("<li><i style=\"background:" + PageStyle.color(link) + "\"></i>");
          page.text(LinkTable.name(link)).raw("</li>");
        });
    if (!pools.isEmpty()) {
      final Point last = pools.get(pools.size() - 1);
      if (hasGpu(pools)) {
        legend("gpu", "", "in GPU memory " + Html.bytes(last.deviceUsed()));
      }
      legend("host", "8 4", "in host memory " + Html.bytes(last.hostUsed()));
      legend("files", "2 3", "in files " + Html.bytes(last.files()));
    }
    page.raw("</ul>");
  }

  /** Whether any executor has or had a pool in GPU memory. */
  static boolean hasGpu(final List<Point> points) {
    return points.stream().anyMatch(point -> point.deviceLimit() > 0 || point.deviceUsed() > 0);
  }

  private double x(final long time) {
    return (double) WIDTH * (time - begin) / (end - begin);
  }

  private Map<Link, Long> rates() {
    final Map<Link, Long> seen = new EnumMap<>(Link.class);
    double most = 0;
    for (final Rate step : rates) {
      long sum = 0;
      for (final Map.Entry<String, Long> entry : step.bytes().entrySet()) {
        final Link link = Summary.link(entry.getKey());
        if (link != null && entry.getValue() > 0) {
          seen.merge(link, entry.getValue(), Long::sum);
          sum += entry.getValue();
        }
      }
      most = Math.max(most, 1e3 * sum / step.millis());
    }
    frame(0, RATES);
    for (final Rate step : rates) {
      double below = RATES;
      for (final Link link : seen.keySet()) {
        final long bytes = step.bytes().getOrDefault(link.label(), 0L);
        final double tall = most == 0 ? 0 : RATES * (1e3 * bytes / step.millis()) / most;
        if (tall > 0) {
          below -= tall;
          page.raw(
              String.format(
                  Locale.ROOT,
                  "<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" style=\"fill:%s\"/>",
                  x(step.timeMillis()),
                  below,
                  Math.max(1, x(step.timeMillis() + step.millis()) - x(step.timeMillis())),
                  tall,
                  PageStyle.color(link)));
        }
      }
    }
    text(4, 14, "start", "read, up to " + Html.rate((long) most, 1_000));
    return seen;
  }

  private void pools(final int top) {
    final long most =
        pools.stream()
            .mapToLong(p -> Math.max(p.files(), Math.max(p.hostUsed(), p.deviceUsed())))
            .max()
            .orElse(0);
    frame(top, POOLS);
    if (hasGpu(pools)) {
      line(top, most, Point::deviceUsed, "gpu", "");
    }
    line(top, most, Point::hostUsed, "host", "8 4");
    line(top, most, Point::files, "files", "2 3");
    text(4, top + 14, "start", "held, up to " + Html.bytes(most));
  }

  private void frame(final int top, final int height) {
    page.raw("<rect y=\"" + top + "\" width=\"" + WIDTH + "\" height=\"" + height + "\"");
    page.raw(" fill=\"none\" style=\"stroke:var(--line)\"/>");
  }

  private void text(final int x, final int y, final String anchor, final String text) {
    page.raw("<text x=\"" + x + "\" y=\"" + y + "\" text-anchor=\"" + anchor + "\">");
    page.text(text).raw("</text>");
  }

  private void line(
      final int top,
      final long most,
      final ToLongFunction<Point> value,
      final String color,
      final String dashes) {
    page.raw("<polyline fill=\"none\" stroke-width=\"2\" style=\"stroke:var(--" + color + ")\"");
    page.raw(" stroke-dasharray=\"" + dashes + "\" points=\"");
    for (final Point point : pools) {
      final double share = most == 0 ? 0 : (double) value.applyAsLong(point) / most;
      page.raw(
          String.format(
              Locale.ROOT, "%.1f,%.1f ", x(point.timeMillis()), top + POOLS * (1 - share)));
    }
    page.raw("\"/>");
  }

  private void legend(final String color, final String dashes, final String text) {
    page.raw("<li><svg xmlns=\"http://www.w3.org/2000/svg\" width=\"36\" height=\"10\">");
    page.raw("<line x1=\"0\" y1=\"5\" x2=\"34\" y2=\"5\" stroke-width=\"2\" style=\"stroke:var(--");
    page.raw(color + ")\" stroke-dasharray=\"" + dashes + "\"/></svg> ").text(text).raw("</li>");
  }
}
