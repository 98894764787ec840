package io.zerohop.spark.ui;

import java.time.Instant;
import java.time.ZoneId;
import java.time.format.DateTimeFormatter;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;

/** Moments in words, in this process' time zone, as on Spark's other pages. */
final class Times {
  private static final long SECOND = 1_000;
  private static final long MINUTE = 60 * SECOND;
  private static final long HOUR = 60 * MINUTE;
  private static final long DAY = 24 * HOUR;

  /** Distances of round moments. */
  private static final long[] STEPS = {
    SECOND,
    2 * SECOND,
    5 * SECOND,
    10 * SECOND,
    15 * SECOND,
    30 * SECOND,
    MINUTE,
    2 * MINUTE,
    5 * MINUTE,
    10 * MINUTE,
    15 * MINUTE,
    30 * MINUTE,
    HOUR,
    2 * HOUR,
    3 * HOUR,
    6 * HOUR,
    12 * HOUR,
    DAY
  };

  private static final DateTimeFormatter CLOCK = format("uuuu-MM-dd HH:mm:ss");
  private static final DateTimeFormatter SECONDS = format("HH:mm:ss");
  private static final DateTimeFormatter MINUTES = format("HH:mm");
  private static final DateTimeFormatter DAYS = format("MM-dd HH:mm");

  private Times() {}

  private static DateTimeFormatter format(final String pattern) {
    return DateTimeFormatter.ofPattern(pattern, Locale.ROOT).withZone(ZoneId.systemDefault());
  }

  /** Returns a moment in words. */
  static String clock(final long millis) {
    return CLOCK.format(Instant.ofEpochMilli(millis));
  }

  /** Returns a moment in a few words, enough beside others within so many milliseconds. */
  static String tick(final long millis, final long within) {
    final DateTimeFormatter format = within < 10 * MINUTE ? SECONDS : within < DAY ? MINUTES : DAYS;
    return format.format(Instant.ofEpochMilli(millis));
  }

  /**
   * Returns round moments between two.
   *
   * @param most how many at most, at least 2
   */
  static List<Long> ticks(final long begin, final long end, final int most) {
    long step = STEPS[0];
    for (int i = 1; i < STEPS.length && (end - begin) / step >= most; i++) {
      step = STEPS[i];
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
