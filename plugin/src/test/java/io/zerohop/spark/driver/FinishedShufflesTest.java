package io.zerohop.spark.driver;

import static org.assertj.core.api.Assertions.assertThat;

import io.zerohop.device.TestClock;
import io.zerohop.spark.driver.LiveShuffles.FinishedShuffles;
import java.time.Duration;
import java.util.HashSet;
import java.util.Set;
import org.junit.jupiter.api.Test;

/** Shuffles 1 to 3 of the queries 10 and 20; what Spark's events hold is seen by a suite. */
class FinishedShufflesTest {
  private final TestClock clock = TestClock.standing();
  private final Set<Integer> kept = new HashSet<>(Set.of(1, 2, 3));
  private final FinishedShuffles shuffles = new FinishedShuffles(kept::contains, clock);

  private void assertFinished(final Integer... expected) {
    assertThat(Set.of(1, 2, 3).stream().filter(id -> shuffles.nanosSinceEnd(id) >= 0))
        .containsExactlyInAnyOrder(expected);
  }

  @Test
  void theEndOfAQueryIsThatOfItsShuffles() {
    shuffles.use(10L, Set.of(1));
    shuffles.use(20L, Set.of(3));
    shuffles.use(10L, Set.of(1, 2));
    assertFinished();
    shuffles.end(10);
    clock.advance(Duration.ofNanos(7));
    assertFinished(1, 2);
    assertThat(shuffles.nanosSinceEnd(1)).isEqualTo(7);
  }

  @Test
  void anExecutionInsideAnotherEndsNothing() {
    shuffles.use(10L, Set.of(1));
    shuffles.end(11);
    assertFinished();
  }

  @Test
  void theLastQueryOfAShuffleEndsIt() {
    shuffles.use(10L, Set.of(1, 2));
    shuffles.use(20L, Set.of(2));
    shuffles.end(10);
    assertFinished(1);
    shuffles.end(20);
    assertFinished(1, 2);
  }

  @Test
  void whatIsUsedAgainIsInUseUntilThatQueryEnds() {
    shuffles.use(10L, Set.of(1));
    shuffles.end(10);
    shuffles.use(20L, Set.of(1));
    assertFinished();
    shuffles.end(20);
    assertFinished(1);
  }

  @Test
  void whatAJobOutsideOfQueriesUsesHasNoEnd() {
    shuffles.use(10L, Set.of(1));
    shuffles.end(10);
    shuffles.use(null, Set.of(1, 3));
    assertFinished();
  }

  @Test
  void whatSparkHasDroppedIsForgottenWithTheQueryWhoseEndWasLost() {
    shuffles.use(10L, Set.of(1));
    shuffles.end(10);
    shuffles.use(20L, Set.of(2));
    kept.removeAll(Set.of(1, 2));
    shuffles.use(30L, Set.of(3));
    shuffles.end(30);
    assertFinished(3);
    kept.add(2);
    shuffles.end(20);
    assertFinished(3);
  }
}
