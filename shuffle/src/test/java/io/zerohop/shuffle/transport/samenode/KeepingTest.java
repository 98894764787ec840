package io.zerohop.shuffle.transport.samenode;

import static org.assertj.core.api.Assertions.assertThat;

import io.zerohop.device.TestClock;
import io.zerohop.shuffle.pool.SegmentIds;
import io.zerohop.shuffle.pool.Tier;
import java.time.Duration;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** The clock stands but where a test says otherwise: a wait that is not due would never end. */
@Timeout(60)
class KeepingTest {
  private static final Duration LONG = Duration.ofHours(1);
  private static final long KEEPER = 5;

  private final TestClock clock = TestClock.standing();
  private final Keeping keeping = new Keeping(clock);

  private boolean isKept(final long... segments) {
    return keeping.awaitKept(segments, LONG) != Keeping.NOT_KEPT;
  }

  private int lateAnswer(final long... segments) {
    try (TestClock.Flight flight = clock.fly()) {
      assertThat(flight).isNotNull();
      return keeping.awaitKept(segments, Duration.ofSeconds(1));
    }
  }

  @Test
  void nobodyWaitsWithoutAKeeper() {
    assertThat(isKept(1)).isFalse();
    keeping.kept(KEEPER, 1); // One that has asked for nothing holds nothing.
    assertThat(isKept(1)).isFalse();
  }

  @Test
  void nobodyWaitsForWhatIsNotKept() {
    keeping.connected(KEEPER, 0, false);
    keeping.kept(KEEPER, 1);
    keeping.unkept(KEEPER, 2);
    assertThat(isKept(1)).isTrue();
    assertThat(isKept(1, 2)).isFalse();
    keeping.kept(KEEPER, 2); // There is room again.
    assertThat(isKept(1, 2)).isTrue();
  }

  @Test
  void afterOneWaitToItsLimitNobodyWaitsUntilTheKeeperIsHeard() {
    keeping.connected(KEEPER, 0, false);
    assertThat(lateAnswer(1)).isEqualTo(Keeping.NOT_KEPT);
    assertThat(isKept(2)).isFalse();
    keeping.kept(KEEPER, 2);
    assertThat(isKept(2)).isTrue();
  }

  @Test
  void withTheKeeperGoesWhatItHeld() {
    keeping.connected(KEEPER, 0, false);
    keeping.kept(KEEPER, 1);
    keeping.disconnected(KEEPER + 1);
    assertThat(isKept(1)).isTrue();
    keeping.disconnected(KEEPER);
    assertThat(keeping.hasKeeper()).isFalse();
    assertThat(isKept(1)).isFalse();
  }

  @Test
  void segmentsThatAreGoneAreForgotten() {
    keeping.connected(KEEPER, 0, false);
    keeping.kept(KEEPER, 1);
    keeping.unkept(KEEPER, 2);
    keeping.retain(id -> false);
    assertThat(lateAnswer(1)).isEqualTo(Keeping.NOT_KEPT);
  }

  @Test
  void thePortIsThatOfTheKeeperWhichHoldsAll() {
    keeping.connected(KEEPER, 4711, false);
    keeping.connected(KEEPER + 1, 0, false);
    keeping.kept(KEEPER, 1);
    keeping.kept(KEEPER, 2);
    keeping.kept(KEEPER + 1, 3);
    assertThat(keeping.awaitKept(new long[] {1, 2, 1}, LONG)).isEqualTo(4711);
    assertThat(keeping.awaitKept(new long[] {3}, LONG)).isZero();
    assertThat(lateAnswer(1, 3)).isEqualTo(Keeping.NOT_KEPT); // None of them serves both.
    assertThat(lateAnswer(1, 9)).isEqualTo(Keeping.NOT_KEPT);
    keeping.disconnected(KEEPER);
    assertThat(lateAnswer(1, 2)).isEqualTo(Keeping.NOT_KEPT);
  }

  /** A keeper that replaces it answers there, if it can. */
  @Test
  void theLastPortIsKnownAfterTheKeepersEnd() {
    assertThat(keeping.lastPort()).isZero();
    keeping.connected(KEEPER, 4711, false);
    keeping.disconnected(KEEPER);
    assertThat(keeping.lastPort()).isEqualTo(4711);
    keeping.connected(KEEPER + 1, 4712, false);
    assertThat(keeping.lastPort()).isEqualTo(4712);
  }

  @Test
  void nothingIsKeptOfAnOutputWithoutSegments() {
    keeping.connected(KEEPER, 0, false);
    assertThat(isKept()).isFalse();
  }

  /** A slot of the segment table is used again, and its old segment may still be spoken of. */
  @Test
  void aSegmentIsNotTakenForTheOneBeforeInItsSlot() {
    final long first = SegmentIds.id(1, Tier.HOST, 7);
    final long second = SegmentIds.id(2, Tier.HOST, 7);
    keeping.connected(KEEPER, 0, false);
    keeping.kept(KEEPER, first);
    keeping.unkept(KEEPER, second);
    assertThat(isKept(first)).isTrue();
    assertThat(isKept(second)).isFalse();
    keeping.kept(KEEPER, second);
    keeping.connected(KEEPER + 1, 0, false);
    keeping.kept(KEEPER + 1, first);
    assertThat(isKept(second)).isTrue();
  }
}
