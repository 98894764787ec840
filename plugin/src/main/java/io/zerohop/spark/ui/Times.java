package io.zerohop.spark.ui;

import java.time.Instant;
import java.time.ZoneId;
import java.time.format.DateTimeFormatter;
import java.util.Locale;

/** Moments in words. */
final class Times {
  private static final DateTimeFormatter CLOCK =
      DateTimeFormatter.ofPattern("uuuu-MM-dd HH:mm:ss", Locale.ROOT)
          .withZone(ZoneId.systemDefault());

  private Times() {}

  /** A moment in this process' time zone, as on Spark's other pages. */
  static String clock(final long millis) {
    return CLOCK.format(Instant.ofEpochMilli(millis));
  }
}
