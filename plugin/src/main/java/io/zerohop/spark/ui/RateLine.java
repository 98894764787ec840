package io.zerohop.spark.ui;

import io.zerohop.spark.report.ReportBounds;
import io.zerohop.spark.report.ShuffleReport;
import io.zerohop.spark.ui.UiSnapshot.Rate;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;

/**
 * Bytes of each link over time: a limited number of steps of equal length, which doubles when they
 * are used up. What an executor reports came since its report before, or in the last {@link
 * #MAX_SPREAD_MILLIS} if that one is older. When what it reports first began to come is not known:
 * it is spread over {@link #FIRST_SPREAD_MILLIS}, so that it is no peak. Not thread safe.
 */
final class RateLine {
  private static final long FIRST_STEP_MILLIS = 1_000;

  /** Executors that have something to report do so every few seconds. */
  private static final long MAX_SPREAD_MILLIS = 10_000;

  /** The default of spark.zerohop.ui.interval, after which a report comes at the latest. */
  private static final long FIRST_SPREAD_MILLIS = 5_000;

  private static final int MAX_EXECUTORS = 10_000;

  /** Steps at most. */
  private final int most;

  private final Map<String, Long> reported = new HashMap<>();
  private List<Map<String, Long>> steps = new ArrayList<>();
  private long begin;
  private long millis = FIRST_STEP_MILLIS;

  RateLine(final int most) {
    this.most = most;
  }

  /** Adds what a report says of bytes. */
  void add(final ShuffleReport report) {
    final long end = report.timeMillis();
    final Long before = reported.get(report.executorId());
    if (before != null || reported.size() < MAX_EXECUTORS) {
      reported.put(report.executorId(), end);
    }
    if (report.flows().isEmpty()) {
      return;
    }
    final long from =
        before == null || before > end
            ? Math.max(0, end - FIRST_SPREAD_MILLIS)
            : Math.max(before, end - MAX_SPREAD_MILLIS);
    if (steps.isEmpty()) {
      begin = from;
    }
    final int last = step(Math.max(from, end - 1)); // Makes room, which moves the first one.
    final int start = Math.min(step(from), last);
    for (final ShuffleReport.Flow flow : report.flows()) {
      long spread = 0;
      for (int i = start; i <= last; i++) {
        // A step that the time covers in part gets that part, else each report's ends were peaks.
        final long covered = Math.min(end, begin + (i + 1) * millis) - from;
        final long until =
            i == last ? flow.bytes() : (long) ((double) flow.bytes() * covered / (end - from));
        final long share = Math.max(0, until - spread);
        spread += share;
        steps.get(i).merge(flow.link(), share, ReportBounds::plus);
      }
    }
  }

  /** The step of a moment, for which room is made; what is earlier than all is in the first. */
  private int step(final long time) {
    long at = Math.max(0, time - begin) / millis;
    while (at >= most) {
      halve();
      at = Math.max(0, time - begin) / millis;
    }
    while (steps.size() <= at) {
      steps.add(new TreeMap<>());
    }
    return (int) at;
  }

  private void halve() {
    final List<Map<String, Long>> halved = new ArrayList<>();
    for (int i = 0; i < steps.size(); i++) {
      if (i % 2 == 0) {
        halved.add(steps.get(i));
      } else {
        final Map<String, Long> into = halved.get(i / 2);
        steps.get(i).forEach((link, bytes) -> into.merge(link, bytes, ReportBounds::plus));
      }
    }
    steps = halved;
    millis *= 2;
  }

  /** Returns the steps so far, the oldest first. */
  List<Rate> rates() {
    final List<Rate> rates = new ArrayList<>();
    for (int i = 0; i < steps.size(); i++) {
      rates.add(new Rate(begin + i * millis, millis, new TreeMap<>(steps.get(i))));
    }
    return rates;
  }
}
