package io.zerohop.shuffle.transport.mapped;

import static org.assertj.core.api.Assertions.assertThat;

import io.zerohop.device.TestClock;
import java.time.Duration;
import java.util.Set;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** The clock stands but where a test says otherwise: a wait that is not due would never end. */
@Timeout(60)
class KeepingTest {
  private static final Duration LONG = Duration.ofHours(1);
  private static final long KEEPER = 5;

  private final TestClock clock = TestClock.standing();
  private final Keeping keeping = new Keeping(clock);

  private boolean isKept(final Long... segments) {
    return keeping.awaitKept(Set.of(segments), LONG);
  }

  @Test
  void nobodyWaitsWithoutAKeeper() {
    assertThat(isKept(1L)).isFalse();
    keeping.kept(KEEPER, 1); // One that has asked for nothing holds nothing.
    assertThat(isKept(1L)).isFalse();
  }

  @Test
  void nobodyWaitsForWhatIsNotKept() {
    keeping.connected(KEEPER);
    keeping.kept(KEEPER, 1);
    keeping.unkept(KEEPER, 2);
    assertThat(isKept(1L)).isTrue();
    assertThat(isKept(1L, 2L)).isFalse();
    keeping.kept(KEEPER, 2); // There is room again.
    assertThat(isKept(1L, 2L)).isTrue();
  }

  @Test
  void afterOneWaitToItsLimitNobodyWaitsUntilTheKeeperIsHeard() {
    keeping.connected(KEEPER);
    try (TestClock.Flight flight = clock.fly()) {
      assertThat(flight).isNotNull();
      assertThat(keeping.awaitKept(Set.of(1L), Duration.ofSeconds(1))).isFalse();
    }
    assertThat(isKept(2L)).isFalse();
    keeping.kept(KEEPER, 2);
    assertThat(isKept(2L)).isTrue();
  }

  @Test
  void withTheKeeperGoesWhatItHeld() {
    keeping.connected(KEEPER);
    keeping.kept(KEEPER, 1);
    keeping.disconnected(KEEPER + 1);
    assertThat(isKept(1L)).isTrue();
    keeping.disconnected(KEEPER);
    assertThat(keeping.hasKeeper()).isFalse();
    assertThat(isKept(1L)).isFalse();
  }

  @Test
  void segmentsThatAreGoneAreForgotten() {
    keeping.connected(KEEPER);
    keeping.kept(KEEPER, 1);
    keeping.unkept(KEEPER, 2);
    keeping.retain(id -> false);
    try (TestClock.Flight flight = clock.fly()) {
      assertThat(flight).isNotNull();
      assertThat(keeping.awaitKept(Set.of(1L), Duration.ofSeconds(1))).isFalse();
    }
  }
}
