package io.zerohop.spark.executor;

import static org.assertj.core.api.Assertions.assertThat;

import io.zerohop.device.Leaks;
import io.zerohop.device.posix.Clock;
import io.zerohop.device.posix.Housekeeping;
import io.zerohop.spark.executor.ExecutorShuffle.OrphanedShuffles;
import java.time.Duration;
import java.util.HashSet;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.Semaphore;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Each round waits until the test lets it ask, so the test knows what was asked so far. */
@Timeout(60)
class OrphanedShufflesTest {
  private final Leaks leaks = new Leaks();
  private final Set<Integer> held = ConcurrentHashMap.newKeySet();
  private final Set<Integer> known = ConcurrentHashMap.newKeySet();
  private final Set<Integer> dropped = ConcurrentHashMap.newKeySet();
  private final Semaphore mayAsk = new Semaphore(0);
  private final Semaphore rounds = new Semaphore(0);
  private volatile boolean driverFails;

  private final Housekeeping housekeeping = new Housekeeping(Clock.system());

  private final OrphanedShuffles orphans =
      new OrphanedShuffles(this::begin, this::ask, this::drop, Duration.ofMillis(1), housekeeping);

  private Set<Integer> begin() {
    if (Thread.currentThread().getName().equals("zerohop-housekeeping")) {
      return Set.of(0); // Whether a round is needed, which it always is here.
    }
    rounds.release(); // What the round before had to drop is dropped.
    mayAsk.acquireUninterruptibly();
    return new HashSet<>(held);
  }

  private Set<Integer> ask(final Set<Integer> asked) {
    if (driverFails) {
      throw new IllegalStateException("no answer");
    }
    final Set<Integer> answer = new HashSet<>(asked);
    answer.retainAll(known);
    return answer;
  }

  private void drop(final int shuffleId) {
    dropped.add(shuffleId);
    held.remove(shuffleId);
  }

  private void round() throws InterruptedException {
    assertThat(rounds.tryAcquire(20, TimeUnit.SECONDS)).isTrue();
    mayAsk.release();
    assertThat(rounds.tryAcquire(20, TimeUnit.SECONDS)).isTrue();
    rounds.release(); // The next round has begun, and waits.
  }

  @AfterEach
  void theThreadEnds() {
    mayAsk.release(1000);
    orphans.close();
    housekeeping.close();
    leaks.check();
  }

  @Test
  void whatTheDriverDoesNotKnowTwiceIsDropped() throws Exception {
    held.addAll(Set.of(1, 2));
    known.add(2);
    round();
    assertThat(dropped).isEmpty();
    round();
    assertThat(dropped).containsExactly(1);
    round();
    assertThat(held).containsExactly(2);
  }

  @Test
  void aShuffleThatIsComputedAgainStays() throws Exception {
    held.add(1);
    round();
    known.add(1);
    round();
    known.remove(1);
    round();
    assertThat(dropped).isEmpty();
    round();
    assertThat(dropped).containsExactly(1);
  }

  @Test
  void aQuestionBetweenRoundsDropsNothing() throws Exception {
    final Semaphore asked = new Semaphore(0);
    try (OrphanedShuffles hurried =
        new OrphanedShuffles(
            () -> Set.of(1),
            shuffles -> {
              asked.release();
              driverFails = !driverFails;
              return ask(shuffles);
            },
            this::drop,
            Duration.ofHours(1),
            housekeeping)) {
      while (!asked.tryAcquire(5, 10, TimeUnit.MILLISECONDS)) {
        hurried.hurry();
      }
    }
    assertThat(dropped).isEmpty();
  }

  @Test
  void whoHoldsNothingAsksNobody() throws Exception {
    final Semaphore looked = new Semaphore(0);
    final Set<Integer> asked = ConcurrentHashMap.newKeySet();
    try (OrphanedShuffles idle =
        new OrphanedShuffles(
            () -> {
              looked.release();
              return Set.of();
            },
            shuffles -> {
              asked.add(1);
              return shuffles;
            },
            this::drop,
            Duration.ofMillis(1),
            housekeeping)) {
      assertThat(looked.tryAcquire(3, 20, TimeUnit.SECONDS)).isTrue();
      assertThat(idle).isNotNull();
    }
    assertThat(asked).isEmpty();
  }

  @Test
  void withoutAnAnswerNothingIsDropped() throws Exception {
    held.add(1);
    driverFails = true;
    round();
    round();
    round();
    assertThat(dropped).isEmpty();
    driverFails = false;
    round();
    assertThat(dropped).isEmpty();
    round();
    assertThat(dropped).containsExactly(1);
  }
}
