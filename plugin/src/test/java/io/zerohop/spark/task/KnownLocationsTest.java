package io.zerohop.spark.task;

import static org.assertj.core.api.Assertions.assertThat;

import io.zerohop.shuffle.block.Location;
import io.zerohop.spark.task.ReduceTask.KnownLocations;
import org.junit.jupiter.api.Test;

class KnownLocationsTest {
  private final KnownLocations locations = new KnownLocations();

  private static String text(final int executor) {
    return new Location("01234567", "0123456789abcdef", executor, 7337, "e-0123456789abcdef")
        .encode();
  }

  @Test
  void aTextIsParsedOnce() {
    final Location first = locations.of(text(1));
    assertThat(first).isEqualTo(Location.parse(text(1)));
    assertThat(locations.of(text(1))).isSameAs(first);
    assertThat(locations.of(text(2))).isNotEqualTo(first);
  }

  @Test
  void whatIsNoLocationIsNotKept() {
    assertThat(locations.of(null)).isNull();
    assertThat(locations.of("/rack-1")).isNull();
    assertThat(locations.size()).isZero();
  }

  @Test
  void executorsThatComeAndGoDoNotFillTheMemory() {
    for (int executor = 0; executor < 40_000; executor++) {
      assertThat(locations.of(text(executor)).incarnation()).isEqualTo(executor);
    }
    assertThat(locations.size()).isLessThanOrEqualTo(16_384);
  }
}
