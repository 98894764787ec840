package io.zerohop.spark.ui;

import java.util.Locale;

/**
 * The colour of a cell: of a rate by its share of the expected rate, of bytes by the share that
 * took the fallback. Where a cell has both, the worse one decides. Immutable.
 */
record Rating(Shade shade, Cause cause) {

  /** The reasons for a colour. */
  enum Cause {
    /** Nothing is known but bytes. */
    NONE,
    /** The rate's share of the expected rate. */
    RATE,
    /** The share of the bytes that took the fallback. */
    FALLBACK
  }

  /** Colours, the best one first. */
  enum Shade {
    /** No rate, or no expectation. */
    GREY("r-none", -1, 2),
    /** As expected. */
    GREEN("r-ok", Double.POSITIVE_INFINITY, 2),
    /** A little wrong. */
    YELLOW("r-mid", 0.5, Summary.SOME_FALLBACK),
    /** Wrong. */
    ORANGE("r-mid2", 0.35, 0.2),
    /** Much is wrong. */
    DEEP("r-mid3", 0.2, 0.35),
    /** Very much is wrong. */
    RED("r-bad", 0.1, 0.5);

    private final String css;
    private final double belowRate;
    private final double fromFallback;

    /** It counts below this share of the expected rate, or from this share of fallback on. */
    Shade(final String css, final double belowRate, final double fromFallback) {
      this.css = css;
      this.belowRate = belowRate;
      this.fromFallback = fromFallback;
    }

    String css() {
      return css;
    }

    /** Returns its name for users. */
    String word() {
      return this == DEEP ? "dark orange" : name().toLowerCase(Locale.ROOT);
    }

    double belowRate() {
      return belowRate;
    }

    private String rule() {
      return switch (this) {
        case GREY -> "no rate, or no expected rate";
        case GREEN ->
            String.format(
                Locale.ROOT,
                "%.0f %% of the expected rate or more, and less than %.0f %% fallback",
                100 * YELLOW.belowRate,
                100 * YELLOW.fromFallback);
        default ->
            String.format(
                Locale.ROOT,
                "below %.0f %% of the expected rate, or %.0f %% fallback",
                100 * belowRate,
                100 * fromFallback);
      };
    }
  }

  /**
   * Rates a cell.
   *
   * @param reached the rate's share of the expected rate; negative if either is not known
   * @param fallback the share of the bytes that took the fallback
   */
  static Rating of(final double reached, final double fallback) {
    Shade byRate = Shade.GREY;
    Shade byFallback = Shade.GREY;
    for (final Shade shade : Shade.values()) {
      byRate = reached >= 0 && reached < shade.belowRate ? shade : byRate;
      byFallback = fallback >= shade.fromFallback ? shade : byFallback;
    }
    if (byFallback.compareTo(Shade.GREEN) > 0 && byFallback.compareTo(byRate) > 0) {
      return new Rating(byFallback, Cause.FALLBACK);
    }
    return new Rating(byRate, byRate == Shade.GREY ? Cause.NONE : Cause.RATE);
  }

  /** Returns the colour and what decided it, in words. */
  String text() {
    final String word =
        shade.word().substring(0, 1).toUpperCase(Locale.ROOT) + shade.word().substring(1);
    return switch (cause) {
      case NONE -> word + ": no expected rate";
      case RATE -> word + " by its rate";
      case FALLBACK -> word + " by its fallback";
    };
  }

  /** Writes what each colour means. */
  static void legend(final Html page) {
    page.raw("<ul class=\"legend\" id=\"zerohop-shades\">");
    for (final Shade shade : Shade.values()) {
      page.raw("<li><i class=\"" + shade.css + "\"></i>")
          .text(shade.word() + ": " + shade.rule())
          .raw("</li>");
    }
    page.raw("</ul>");
  }
}
