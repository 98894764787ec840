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
  private static final long DAY = 24 * 60 * MINUTE;

  /** Distances of round moments, in seconds: less than a minute, than an hour, than two days. */
  private static final long[] STEPS = {
    1, 2, 5, 10, 15, 30,
    60, 120, 300, 600, 900, 1_800,
    3_600, 7_200, 10_800, 21_600, 43_200, 86_400
  };

  private static final DateTimeFormatter CLOCK = format("uuuu-MM-dd HH:mm:ss");
  private static final DateTimeFormatter SECONDS = format("HH:mm:ss");
  private static final DateTimeFormatter MINUTES = format("HH:mm");
  private static final DateTimeFormatter DAYS = format("MM-dd HH:mm");

  private Times() {}

  private static DateTimeFormatter format(final String pattern) {
    return DateTimeFormatter.ofPattern(pattern, Locale.ROOT).withZone(ZoneId.systemDefault());
  }

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
