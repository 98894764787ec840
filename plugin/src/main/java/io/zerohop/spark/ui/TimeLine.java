package io.zerohop.spark.ui;

import io.zerohop.shuffle.block.Link;
import io.zerohop.spark.report.Figure;
import io.zerohop.spark.report.Figure.Figures;
import io.zerohop.spark.ui.Html.PageStyle;
import io.zerohop.spark.ui.UiSnapshot.Point;
import io.zerohop.spark.ui.UiSnapshot.Rate;
import io.zerohop.spark.ui.UiSnapshot.Series;
import java.time.Instant;
import java.time.ZoneId;
import java.time.format.DateTimeFormatter;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.EnumMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;

/**
 * Two charts over the application's time, of all executors together: bytes a second by link, one on
 * the other, and below it what lies in pools and files. The drawings are as wide as the page;
 * names, values and times are text beside them, which keeps its size.
 */
final class TimeLine {
  /** Moments of the pools. */
  private static final int MOMENTS = 60;

  /** Units of a drawing, which is stretched. */
  private static final int WIDTH = 1_000;

  private static final int HEIGHT = 100;

  /** Of a drawing's height: what a line of text takes. */
  private static final double TEXT = 16;

  private static final int MAX_VALUES = 4;
  private static final int MAX_TIMES = 5;

  private final Html page;
  private final List<Rate> rates;
  private final List<Point> pools;
  private final long begin;
  private final long end;
  private final List<Long> times;

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
    this.times = Times.ticks(begin, end, MAX_TIMES);
  }

  /**
   * A place that bytes lie in.
   *
   * @param color its name in the style sheet
   * @param dashes of its line; empty for a solid one
   */
  private record Place(String name, String color, String dashes, Figure figure) {
    long in(final Point point) {
      return point.get(figure);
    }
  }

  /** Writes them, if there is anything to show. */
  static void render(final Html page, final UiSnapshot known) {
    final List<Point> pools = sums(known.memory(), MOMENTS);
    if (!known.rates().isEmpty() || !pools.isEmpty()) {
      new TimeLine(page, known.rates(), pools).draw();
    }
  }

  private void draw() {
    page.heading(
        "Over time: all executors together", Html.clock(begin) + " to " + Html.clock(end) + ".");
    page.raw("<div id=\"zerohop-time\">");
    if (!rates.isEmpty()) {
      rates();
    }
    if (!pools.isEmpty()) {
      pools();
    }
    page.raw("</div>");
  }

  /** Whether any executor has or had a pool in GPU memory. */
  static boolean hasGpu(final List<Point> points) {
    return points.stream()
        .anyMatch(point -> point.get(Figure.DEVICE_LIMIT) > 0 || point.get(Figure.DEVICE_USED) > 0);
  }

  private double x(final long time) {
    return (double) WIDTH * (time - begin) / (end - begin);
  }

  private void rates() {
    final Map<Link, String> seen = new EnumMap<>(Link.class);
    double most = 0;
    for (final Rate step : rates) {
      long sum = 0;
      for (final Map.Entry<String, Long> entry : step.bytes().entrySet()) {
        final Link link = Summary.link(entry.getKey());
        if (link != null && entry.getValue() > 0) {
          seen.put(link, LinkTable.name(link));
          sum += entry.getValue();
        }
      }
      most = Math.max(most, 1e3 * sum / step.millis());
    }
    page.raw("<h5>Read, bytes a second by link</h5>");
    LinkTable.legend(page, seen);
    final double top = begin("Bytes a second by link, over time", most, "/s");
    final double[] below = new double[rates.size()];
    for (final Link link : seen.keySet()) {
      area(link, below, top);
    }
    page.raw("</svg>");
    end();
  }

  /** Draws what came over a link on top of what came over those before it. */
  private void area(final Link link, final double[] below, final double top) {
    final StringBuilder upper = new StringBuilder();
    final StringBuilder lower = new StringBuilder();
    for (int i = 0; i < rates.size(); i++) {
      final Rate step = rates.get(i);
      final double before = below[i];
      below[i] += 1e3 * step.bytes().getOrDefault(link.label(), 0L) / step.millis();
      final double from = x(step.timeMillis());
      final double until = x(step.timeMillis() + step.millis());
      upper.append(place(from, below[i] / top)).append(place(until, below[i] / top));
      lower.insert(0, place(until, before / top) + place(from, before / top));
    }
    page.raw("<polygon style=\"fill:" + PageStyle.color(link) + "\" points=\"");
    page.raw(upper.toString() + lower + "\"/>");
  }

  private static String place(final double x, final double share) {
    return String.format(Locale.ROOT, "%.1f,%.1f ", x, HEIGHT * (1 - share));
  }

  private void pools() {
    final List<Place> places = new ArrayList<>();
    if (hasGpu(pools)) {
      places.add(new Place("GPU memory", "gpu", "", Figure.DEVICE_USED));
    }
    places.add(new Place("host memory", "host", "8 4", Figure.HOST_USED));
    places.add(new Place("files", "files", "2 3", Figure.FILES));
    final long most = places.stream().mapToLong(this::most).max().orElse(0);
    page.raw("<h5>Held, bytes of map outputs</h5><ul class=\"legend\">");
    for (final Place place : places) {
      page.raw("<li><svg class=\"dash\" width=\"36\" height=\"10\">");
      page.raw("<line x1=\"0\" y1=\"5\" x2=\"34\" y2=\"5\" " + stroke(place) + "/></svg> ");
      final long last = place.in(pools.get(pools.size() - 1));
      page.text(place.name + ": " + Html.bytes(last) + " at the end");
      page.text(last == most(place) ? "" : ", " + Html.bytes(most(place)) + " at most");
      page.raw("</li>");
    }
    page.raw("</ul>");
    final double top = begin("Bytes in pools and files, over time", (double) most, "");
    for (final Place place : places) {
      if (most(place) > 0) {
        page.raw("<polyline fill=\"none\" " + stroke(place) + " points=\"");
        for (final Point point : pools) {
          page.raw(place(x(point.timeMillis()), place.in(point) / top));
        }
        page.raw("\"/>");
      }
    }
    page.raw("</svg>");
    names(places.stream().filter(place -> most(place) > 0).toList(), top);
    end();
  }

  private long most(final Place place) {
    return pools.stream().mapToLong(place::in).max().orElse(0);
  }

  private static String stroke(final Place place) {
    return "stroke-width=\"2\" vector-effect=\"non-scaling-stroke\" style=\"stroke:var(--"
        + place.color
        + ")\" stroke-dasharray=\""
        + place.dashes
        + "\"";
  }

  /** Writes the names of lines beside their ends, one above the other where ends are close. */
  private void names(final List<Place> places, final double top) {
    final Point last = pools.get(pools.size() - 1);
    page.raw("<div class=\"names\">");
    double free = 0;
    for (final Place place :
        places.stream().sorted(Comparator.comparingLong(one -> one.in(last))).toList()) {
      final double share = HEIGHT * place.in(last) / top;
      final double bottom = Math.max(free, share - TEXT / 2);
      free = bottom + TEXT;
      page.raw(String.format(Locale.ROOT, "<span style=\"bottom:%.0f%%\">", bottom));
      page.text(place.name).raw("</span>");
    }
    page.raw("</div>");
  }

  /**
   * Begins a chart: its values, and a drawing with a line at each value and time.
   *
   * @param most the largest value that it shows
   * @param unit what follows a size
   * @return the value at its top
   */
  private double begin(final String label, final double most, final String unit) {
    final double step = step(Math.max(1, most));
    final int steps = (int) Math.max(1, Math.ceil(most / step));
    final double top = step * steps;
    page.raw("<div class=\"chart\"><div class=\"values\">");
    for (int i = 0; i <= steps; i++) {
      page.raw(String.format(Locale.ROOT, "<span style=\"bottom:%.1f%%\">", 100.0 * i / steps));
      page.text(i == 0 ? "0" : value(step * i) + unit).raw("</span>");
    }
    page.raw("</div><svg xmlns=\"http://www.w3.org/2000/svg\" role=\"img\" aria-label=\"");
    page.text(label).raw("\" preserveAspectRatio=\"none\" viewBox=\"0 0 " + WIDTH + " " + HEIGHT);
    page.raw("\"><path class=\"grid\" vector-effect=\"non-scaling-stroke\" d=\"");
    for (int i = 0; i <= steps; i++) {
      page.raw(String.format(Locale.ROOT, "M0 %.1fH%d", (double) HEIGHT * i / steps, WIDTH));
    }
    for (final long time : times) {
      page.raw(String.format(Locale.ROOT, "M%.1f 0V%d", x(time), HEIGHT));
    }
    page.raw("\"/>");
    return top;
  }

  /** Ends a chart with its times. */
  private void end() {
    page.raw("<div class=\"times\">");
    for (final long time : times) {
      page.raw(String.format(Locale.ROOT, "<span style=\"left:%.1f%%\">", 100 * x(time) / WIDTH));
      page.text(Times.tick(time, end - begin)).raw("</span>");
    }
    page.raw("</div></div>");
  }

  /** Returns a round number of bytes by which a few values go up to a largest one. */
  static double step(final double most) {
    double unit = 1;
    while (most >= 1024 * unit) {
      unit *= 1024;
    }
    for (final double step : new double[] {0.5, 1, 2, 5, 10, 20, 50, 100, 200}) {
      if (most <= MAX_VALUES * step * unit) {
        return step * unit;
      }
    }
    return 500 * unit;
  }

  private static String value(final double bytes) {
    return Html.bytes((long) bytes).replace(".0 ", " ");
  }

  /**
   * Returns the pools of all executors together at moments of equal distance, the oldest first.
   * Each executor counts with what it said last before.
   *
   * @param most how many moments at most, at least 2
   */
  static List<Point> sums(final List<Series> all, final int most) {
    final List<Point> points = all.stream().flatMap(one -> one.points().stream()).toList();
    if (points.isEmpty()) {
      return List.of();
    }
    final long begin = points.stream().mapToLong(Point::timeMillis).min().getAsLong();
    final long end = points.stream().mapToLong(Point::timeMillis).max().getAsLong();
    final int steps = (int) Math.max(1, Math.min(most - 1, end - begin));
    final List<Point> sums = new ArrayList<>();
    for (int i = 0; i <= steps; i++) {
      sums.add(sum(all, begin + (end - begin) * i / steps));
    }
    return sums;
  }

  private static Point sum(final List<Series> all, final long time) {
    Figures sum = Figures.NONE;
    for (final Series one : all) {
      Figures last = Figures.NONE;
      for (final Point point : one.points()) {
        if (point.timeMillis() <= time) {
          last = point.figures();
        }
      }
      sum = sum.plus(last);
    }
    return new Point(time, sum);
  }

  /** Moments on an axis, in this process' time zone. */
  static final class Times {
    private static final long SECOND = 1_000;
    private static final long MINUTE = 60 * SECOND;
    private static final long DAY = 24 * 60 * MINUTE;

    /** Distances of round moments, in seconds: less than a minute, than an hour, than two days. */
    private static final long[] STEPS = {
      1, 2, 5, 10, 15, 30,
      60, 120, 300, 600, 900, 1_800,
      3_600, 7_200, 10_800, 21_600, 43_200, 86_400
    };

    private static final DateTimeFormatter SECONDS = format("HH:mm:ss");
    private static final DateTimeFormatter MINUTES = format("HH:mm");
    private static final DateTimeFormatter DAYS = format("MM-dd HH:mm");

    private Times() {}

    private static DateTimeFormatter format(final String pattern) {
      return DateTimeFormatter.ofPattern(pattern, Locale.ROOT).withZone(ZoneId.systemDefault());
    }

    /** Returns a moment in a few words, enough beside others within so many milliseconds. */
    static String tick(final long millis, final long within) {
      final DateTimeFormatter format =
          within < 10 * MINUTE ? SECONDS : within < DAY ? MINUTES : DAYS;
      return format.format(Instant.ofEpochMilli(millis));
    }

    /**
     * Returns round moments between two.
     *
     * @param most how many at most, at least 2
     */
    static List<Long> ticks(final long begin, final long end, final int most) {
      long step = SECOND;
      for (int i = 1; i < STEPS.length && (end - begin) / step >= most; i++) {
        step = STEPS[i] * SECOND;
      }
      while ((end - begin) / step >= most) {
        step += DAY;
      }
      final long zone =
          SECOND
              * ZoneId.systemDefault()
                  .getRules()
                  .getOffset(Instant.ofEpochMilli(begin))
                  .getTotalSeconds();
      final List<Long> ticks = new ArrayList<>();
      for (long at = -Math.floorDiv(-begin - zone, step) * step - zone; at <= end; at += step) {
        ticks.add(at);
      }
      return ticks;
    }
  }
}
