package io.zerohop.device.posix;

import static org.assertj.core.api.Assertions.assertThat;

import io.zerohop.device.TestClock;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.Semaphore;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Chores of both kinds, by a clock that stands until a test advances it. */
@Timeout(60)
class HousekeepingTest {
  private static final Duration PERIOD = Duration.ofMinutes(10);
  private static final String HOUSEKEEPING = "zerohop-housekeeping";

  private final TestClock clock = TestClock.standing();
  private final Housekeeping housekeeping = new Housekeeping(clock);
  private final List<String> threads = new CopyOnWriteArrayList<>();
  private final Semaphore done = new Semaphore(0);

  @AfterEach
  void end() {
    housekeeping.close();
    // A thread of a pool that has ended is seen for some microseconds more.
    Deadline.in(Duration.ofSeconds(10)).await(() -> ours().isEmpty(), millis -> Thread.sleep(1));
    assertThat(ours()).isEmpty();
  }

  private List<String> ours() {
    return Thread.getAllStackTraces().keySet().stream()
        .map(Thread::getName)
        .filter(name -> name.equals(HOUSEKEEPING) || name.equals("zerohop-long"))
        .toList();
  }

  private void round() {
    threads.add(Thread.currentThread().getName());
    done.release();
  }

  private static void await(final CountDownLatch latch) {
    try {
      latch.await();
    } catch (final InterruptedException e) {
      throw new IllegalStateException(e);
    }
  }

  /** Lets time pass once what was due before is done. */
  private void pass(final Duration time) throws InterruptedException {
    clock.awaitWaiting();
    clock.advance(time);
  }

  private void awaitRounds(final int rounds) throws InterruptedException {
    assertThat(done.tryAcquire(rounds, 30, TimeUnit.SECONDS)).isTrue();
  }

  @Test
  void shortChoresShareOneThreadAndHaveTheirOwnPeriods() throws Exception {
    final Semaphore often = new Semaphore(0);
    housekeeping.every("rare", PERIOD, this::round);
    housekeeping.every("often", PERIOD.dividedBy(2), often::release);
    pass(PERIOD.dividedBy(2));
    assertThat(often.tryAcquire(30, TimeUnit.SECONDS)).isTrue();
    assertThat(done.availablePermits()).isZero();
    pass(PERIOD.dividedBy(2));
    awaitRounds(1);
    assertThat(often.tryAcquire(30, TimeUnit.SECONDS)).isTrue();
    assertThat(threads).containsExactly(HOUSEKEEPING);
    assertThat(ours()).containsExactly(HOUSEKEEPING);
  }

  @Test
  void aLongChoreHoldsUpNoOther() throws Exception {
    final CountDownLatch mayEnd = new CountDownLatch(1);
    final Housekeeping.Chore slow =
        housekeeping.everyLong(
            "long",
            PERIOD,
            () -> true,
            () -> {
              round();
              await(mayEnd);
            });
    final Semaphore others = new Semaphore(0);
    housekeeping.every("short", PERIOD, others::release);
    pass(PERIOD);
    awaitRounds(1);
    assertThat(others.tryAcquire(30, TimeUnit.SECONDS)).isTrue();
    pass(PERIOD);
    assertThat(others.tryAcquire(30, TimeUnit.SECONDS)).isTrue();
    assertThat(slow.isBusy()).isTrue();
    assertThat(threads).containsExactly("zerohop-long");
    mayEnd.countDown();
  }

  @Test
  void aLongChoreThatHasNothingToDoHasNoThread() throws Exception {
    final AtomicBoolean needed = new AtomicBoolean();
    final Semaphore asked = new Semaphore(0);
    housekeeping.everyLong(
        "long",
        PERIOD,
        () -> {
          asked.release();
          return needed.get();
        },
        this::round);
    for (int i = 0; i < 3; i++) {
      pass(PERIOD);
      assertThat(asked.tryAcquire(30, TimeUnit.SECONDS)).isTrue();
    }
    assertThat(ours()).containsExactly(HOUSEKEEPING);
    assertThat(threads).isEmpty();
    needed.set(true);
    pass(PERIOD);
    awaitRounds(1);
  }

  @Test
  void aChoreThatFailsIsDoneAgain() throws Exception {
    housekeeping.every(
        "short",
        PERIOD,
        () -> {
          round();
          throw new IllegalStateException("as a test wants it");
        });
    for (int i = 0; i < 3; i++) {
      pass(PERIOD);
      awaitRounds(1);
    }
  }

  /** However often it is wanted meanwhile, once more is enough. */
  @Test
  void whatIsWantedSeveralTimesIsDoneOnceMore() throws Exception {
    final Semaphore mayEnd = new Semaphore(0);
    final Housekeeping.Chore chore =
        housekeeping.everyLong(
            "long",
            PERIOD,
            () -> true,
            () -> {
              round();
              mayEnd.acquireUninterruptibly();
            });
    chore.hurry();
    awaitRounds(1);
    chore.hurry();
    chore.hurry();
    mayEnd.release(2);
    awaitRounds(1);
    final Semaphore behind = new Semaphore(0);
    chore.soon(behind::release);
    assertThat(behind.tryAcquire(30, TimeUnit.SECONDS)).isTrue();
    assertThat(threads).hasSize(2);
  }

  /** Or what cannot be done would be tried without a pause. */
  @Test
  void aChoreCannotHurryItself() throws Exception {
    final Housekeeping.Chore[] self = new Housekeeping.Chore[1];
    self[0] =
        housekeeping.everyLong(
            "long",
            PERIOD,
            () -> true,
            () -> {
              self[0].hurry();
              round();
            });
    final Semaphore behind = new Semaphore(0);
    for (int i = 0; i < 100; i++) {
      self[0].hurry();
      awaitRounds(1);
      self[0].soon(behind::release);
      assertThat(behind.tryAcquire(30, TimeUnit.SECONDS)).isTrue();
    }
    assertThat(done.availablePermits()).as("what was done unasked").isZero();
  }

  @Test
  void aTaskKeepsTheTimeOfTheNextRound() throws Exception {
    final Semaphore tasks = new Semaphore(0);
    final Housekeeping.Chore chore =
        housekeeping.everyLong("long", PERIOD, () -> true, this::round);
    pass(PERIOD.minusSeconds(1));
    chore.soon(tasks::release);
    assertThat(tasks.tryAcquire(30, TimeUnit.SECONDS)).isTrue();
    assertThat(threads).isEmpty();
    pass(Duration.ofSeconds(1));
    awaitRounds(1);
  }

  @Test
  void theEndWaitsForTheRoundUnderWay() throws Exception {
    final AtomicBoolean ended = new AtomicBoolean();
    final CountDownLatch closing = new CountDownLatch(1);
    final Housekeeping.Chore chore =
        housekeeping.everyLong(
            "long",
            PERIOD,
            () -> true,
            () -> {
              round();
              await(closing);
              ended.set(true);
            });
    chore.hurry();
    awaitRounds(1);
    closing.countDown();
    chore.close();
    assertThat(ended).isTrue();
    assertThat(chore.isBusy()).isFalse();
    chore.hurry();
    pass(PERIOD);
    housekeeping.close();
    assertThat(threads).hasSize(1);
  }

  @Test
  void aRoundThatIsCancelledIsInterrupted() throws Exception {
    final CountDownLatch never = new CountDownLatch(1);
    final Housekeeping.Chore chore =
        housekeeping.everyLong(
            "long",
            PERIOD,
            () -> true,
            () -> {
              round();
              await(never);
            });
    chore.hurry();
    awaitRounds(1);
    chore.cancel();
    chore.close();
    assertThat(chore.isBusy()).isFalse();
  }
}
