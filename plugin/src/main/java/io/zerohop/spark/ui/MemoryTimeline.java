package io.zerohop.spark.ui;

import io.zerohop.spark.ui.UiSnapshot.Point;
import io.zerohop.spark.ui.UiSnapshot.Series;
import java.util.ArrayList;
import java.util.List;

/** The pools of all executors together, at moments of equal distance. */
final class MemoryTimeline {
  private MemoryTimeline() {}

  /**
   * All executors' sums; each counts with what it said last before.
   *
   * @param most how many moments at most, at least 2
   * @return the oldest first; empty if there are no series
   */
  static List<Point> of(final List<Series> all, final int most) {
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
    Point sum = new Point(time, 0, 0, 0, 0, 0, 0, 0, 0);
    for (final Series one : all) {
      Point last = null;
      for (final Point point : one.points()) {
        if (point.timeMillis() <= time) {
          last = point;
        }
      }
      sum = last == null ? sum : plus(sum, last);
    }
    return sum;
  }

  private static Point plus(final Point one, final Point other) {
    return new Point(
        one.timeMillis(),
        one.hostUsed() + other.hostUsed(),
        one.hostLimit() + other.hostLimit(),
        one.deviceUsed() + other.deviceUsed(),
        one.deviceLimit() + other.deviceLimit(),
        one.files() + other.files(),
        one.overflowed() + other.overflowed(),
        one.spilledToHost() + other.spilledToHost(),
        one.spilledToFiles() + other.spilledToFiles());
  }
}
