package io.zerohop.spark.ui;

import static org.assertj.core.api.Assertions.assertThat;

import io.zerohop.spark.ui.Rating.Cause;
import io.zerohop.spark.ui.Rating.Shade;
import org.junit.jupiter.api.Test;

class RatingTest {
  @Test
  void aRateIsRatedByItsShareOfTheExpectedOne() {
    assertThat(Rating.of(-1, 0)).isEqualTo(new Rating(Shade.GREY, Cause.NONE));
    assertThat(Rating.of(1.2, 0)).isEqualTo(new Rating(Shade.GREEN, Cause.RATE));
    assertThat(Rating.of(0.5, 0.04)).isEqualTo(new Rating(Shade.GREEN, Cause.RATE));
    assertThat(Rating.of(0.49, 0)).isEqualTo(new Rating(Shade.YELLOW, Cause.RATE));
    assertThat(Rating.of(0.34, 0)).isEqualTo(new Rating(Shade.ORANGE, Cause.RATE));
    assertThat(Rating.of(0.19, 0)).isEqualTo(new Rating(Shade.DEEP, Cause.RATE));
    assertThat(Rating.of(0.05, 0)).isEqualTo(new Rating(Shade.RED, Cause.RATE));
  }

  @Test
  void bytesAreRatedByTheShareThatTookTheFallback() {
    assertThat(Rating.of(-1, 0.04)).isEqualTo(new Rating(Shade.GREY, Cause.NONE));
    assertThat(Rating.of(-1, 0.05)).isEqualTo(new Rating(Shade.YELLOW, Cause.FALLBACK));
    assertThat(Rating.of(-1, 0.34)).isEqualTo(new Rating(Shade.ORANGE, Cause.FALLBACK));
    assertThat(Rating.of(-1, 0.44)).isEqualTo(new Rating(Shade.DEEP, Cause.FALLBACK));
    assertThat(Rating.of(-1, 0.6)).isEqualTo(new Rating(Shade.RED, Cause.FALLBACK));
  }

  @Test
  void theWorseOfBothDecides() {
    assertThat(Rating.of(0.95, 0.3)).isEqualTo(new Rating(Shade.ORANGE, Cause.FALLBACK));
    assertThat(Rating.of(0.05, 0.3)).isEqualTo(new Rating(Shade.RED, Cause.RATE));
    assertThat(Rating.of(0.3, 0.3)).isEqualTo(new Rating(Shade.ORANGE, Cause.RATE));
  }
}
