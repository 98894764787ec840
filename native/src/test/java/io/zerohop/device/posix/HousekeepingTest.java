package io.zerohop.device.posix;

import static org.assertj.core.api.Assertions.assertThat;

import io.zerohop.device.Leaks;
import io.zerohop.device.TestClock;
import java.time.Duration;
import java.util.concurrent.Semaphore;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicReference;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Chores that are done again and again, or when they are wanted. */
@Timeout(60)
class HousekeepingTest {
  private static final Duration NEVER = Duration.ofDays(1);
  private static final Duration OFTEN = Duration.ofMillis(1);

  private final Leaks leaks = new Leaks();
  private final TestClock clock = TestClock.standing();
  private final Housekeeping house = new Housekeeping(Clock.system());
  private final Housekeeping timed = new Housekeeping(clock);
  private final Semaphore done = new Semaphore(0);
  private final Semaphore mayEnd = new Semaphore(0);

  @AfterEach
  void theThreadsEnd() {
    mayEnd.release(1000);
    house.close();
    timed.close();
    assertThat(house.isAlive()).isFalse();
    leaks.check();
  }

  private boolean isDone(final int times) throws InterruptedException {
    return done.tryAcquire(times, 30, TimeUnit.SECONDS);
  }

  private void fail() {
    done.release();
    throw new IllegalStateException("as a test wants it");
  }

  private void workUntilTold() {
    done.release();
    mayEnd.acquireUninterruptibly();
  }

  @Test
  void aChoreThatFailsIsDoneAgainAndKeepsNoneFromTheThread() throws InterruptedException {
    house.every(OFTEN, "fails", this::fail);
    house.every(OFTEN, "fails-aside", () -> true, this::fail);
    house.every(
        OFTEN,
        "lacks-a-class",
        () -> {
          done.release();
          throw new NoClassDefFoundError("as a test wants it");
        });
    house.every(
        OFTEN,
        "cannot-look",
        () -> {
          fail();
          return true;
        },
        () -> {});
    assertThat(isDone(30)).isTrue();
  }

  @Test
  void itIsDoneWhenItsPeriodHasPassed() throws InterruptedException {
    timed.every(NEVER, "chore", done::release);
    for (int round = 0; round < 3; round++) {
      clock.awaitWaiting();
      assertThat(done.availablePermits()).isZero();
      clock.advance(NEVER);
      assertThat(isDone(1)).isTrue();
    }
  }

  @Test
  void itIsDoneAtOnceWhenItIsWanted() throws InterruptedException {
    final Housekeeping.Chore chore = house.every(NEVER, "chore", done::release);
    for (int round = 0; round < 3; round++) {
      chore.hurry();
      assertThat(isDone(1)).isTrue();
    }
  }

  /** Or who hurries often would keep it from what comes by its period. */
  @Test
  void toHurryDoesNotPutOffItsPeriod() throws InterruptedException {
    final Housekeeping.Chore chore = timed.every(Duration.ofSeconds(2), "chore", done::release);
    chore.hurry();
    assertThat(isDone(1)).isTrue();
    clock.advance(Duration.ofSeconds(1));
    chore.hurry();
    assertThat(isDone(1)).isTrue();
    clock.awaitWaiting();
    clock.advance(Duration.ofSeconds(1));
    assertThat(isDone(1)).isTrue();
  }

  @Test
  void itCannotHurryItself() throws InterruptedException {
    for (final boolean aside : new boolean[] {false, true}) {
      final AtomicReference<Housekeeping.Chore> self = new AtomicReference<>();
      final Runnable work =
          () -> {
            self.get().hurry();
            done.release();
          };
      self.set(
          aside
              ? house.every(NEVER, "chore", () -> true, work)
              : house.every(NEVER, "chore", work));
      for (int round = 0; round < 100; round++) {
        self.get().hurry();
        assertThat(isDone(1)).isTrue();
      }
      self.get().close();
      assertThat(done.availablePermits()).as("what was done unasked").isZero();
    }
  }

  @Test
  void workThatWaitsKeepsNoChoreWaiting() throws InterruptedException {
    final AtomicReference<String> name = new AtomicReference<>();
    house.every(
        OFTEN,
        "slow",
        () -> true,
        () -> {
          name.set(Thread.currentThread().getName());
          workUntilTold();
        });
    assertThat(isDone(1)).isTrue();
    house.every(OFTEN, "quick", done::release);
    assertThat(isDone(20)).isTrue();
    assertThat(name.get()).isEqualTo("zerohop-slow");
  }

  @Test
  void itIsDoneOnceMoreIfItIsWantedWhileItIsBeingDone() throws InterruptedException {
    final Housekeeping.Chore chore = house.every(NEVER, "slow", () -> true, this::workUntilTold);
    chore.hurry();
    assertThat(isDone(1)).isTrue();
    chore.hurry();
    chore.hurry();
    assertThat(done.tryAcquire(20, TimeUnit.MILLISECONDS)).as("two at a time").isFalse();
    mayEnd.release();
    assertThat(isDone(1)).isTrue();
    mayEnd.release();
    assertThat(done.tryAcquire(20, TimeUnit.MILLISECONDS)).as("a third time").isFalse();
  }

  @Test
  void withoutSomethingToDoThereIsNoThreadForIt() throws InterruptedException {
    final AtomicInteger looks = new AtomicInteger();
    house.every(
        OFTEN,
        "nothing",
        () -> {
          looks.incrementAndGet();
          done.release();
          return false;
        },
        this::workUntilTold);
    assertThat(isDone(10)).isTrue();
    assertThat(Thread.getAllStackTraces().keySet())
        .noneMatch(thread -> thread.getName().equals("zerohop-chores"));
  }

  @Test
  void toCloseItWaitsForWhatIsBeingDone() throws InterruptedException {
    final AtomicInteger ended = new AtomicInteger();
    final Housekeeping.Chore chore =
        house.every(
            NEVER,
            "slow",
            () -> true,
            () -> {
              workUntilTold();
              ended.incrementAndGet();
            });
    chore.hurry();
    assertThat(isDone(1)).isTrue();
    assertThat(house.toString()).isEqualTo("[slow]");
    mayEnd.release();
    chore.close();
    assertThat(ended.get()).isEqualTo(1);
    chore.hurry();
    assertThat(done.tryAcquire(20, TimeUnit.MILLISECONDS)).isFalse();
  }

  @Test
  void whatIsCancelledIsInterrupted() throws InterruptedException {
    final Housekeeping.Chore chore =
        house.every(
            NEVER,
            "held-up",
            () -> true,
            () -> {
              done.release();
              try {
                mayEnd.acquire();
              } catch (final InterruptedException e) {
                done.release();
              }
            });
    chore.hurry();
    assertThat(isDone(1)).isTrue();
    chore.cancel();
    chore.close();
    assertThat(done.tryAcquire()).isTrue();
    final AtomicReference<Boolean> interrupted = new AtomicReference<>();
    final Housekeeping.Chore next =
        house.every(
            OFTEN,
            "next",
            () -> true,
            () -> {
              interrupted.set(Thread.currentThread().isInterrupted());
              done.release();
            });
    assertThat(isDone(1)).isTrue();
    next.close();
    assertThat(interrupted.get()).isFalse();
  }

  @Test
  void itDoesWhatOthersCannot() throws InterruptedException {
    house.execute(this::fail);
    house.execute(done::release);
    assertThat(isDone(2)).isTrue();
  }
}
