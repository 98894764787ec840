package io.zerohop.device.posix;

import static org.assertj.core.api.Assertions.assertThat;

import io.zerohop.device.TestClock;
import java.time.Duration;
import java.util.concurrent.Semaphore;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;

/** A chore that is done again and again, or when it is wanted. */
class ChoreThreadTest {
  private static final Duration NEVER = Duration.ofDays(1);
  private static final long LIMIT_SECONDS = 30;

  private final Semaphore done = new Semaphore(0);

  private boolean isDone(final int times) throws InterruptedException {
    return done.tryAcquire(times, LIMIT_SECONDS, TimeUnit.SECONDS);
  }

  @Test
  void aChoreThatFailsIsDoneAgain() throws InterruptedException {
    try (ChoreThread thread =
        new ChoreThread("test", Duration.ofMillis(1), Clock.system(), this::fail)) {
      assertThat(isDone(3)).isTrue();
      assertThat(thread.isAlive()).isTrue();
    }
  }

  private void fail() {
    done.release();
    throw new IllegalStateException("as a test wants it");
  }

  @Test
  void itIsDoneWhenItsPeriodHasPassed() throws InterruptedException {
    final TestClock clock = TestClock.standing();
    try (ChoreThread thread = new ChoreThread("test", NEVER, clock, done::release)) {
      for (int round = 0; round < 3; round++) {
        clock.awaitWaiting();
        assertThat(done.availablePermits()).isZero();
        clock.advance(NEVER);
        assertThat(isDone(1)).isTrue();
      }
      assertThat(thread.isAlive()).isTrue();
    }
  }

  @Test
  void itIsDoneAtOnceWhenItIsWanted() throws InterruptedException {
    try (ChoreThread thread = new ChoreThread("test", NEVER, Clock.system(), done::release)) {
      thread.hurry();
      assertThat(isDone(1)).isTrue();
      thread.hurry();
      assertThat(isDone(1)).isTrue();
    }
  }

  @Test
  void itCannotHurryItself() throws InterruptedException {
    final ChoreThread[] self = new ChoreThread[1];
    try (ChoreThread thread =
        new ChoreThread(
            "test",
            NEVER,
            Clock.system(),
            () -> {
              self[0].hurry();
              done.release();
            })) {
      self[0] = thread;
      for (int round = 0; round < 100; round++) {
        thread.hurry();
        assertThat(isDone(1)).isTrue();
      }
    }
    assertThat(done.availablePermits()).as("what was done unasked").isZero();
  }

  @Test
  void afterItsEndNothingIsDone() {
    final ChoreThread thread = new ChoreThread("test", NEVER, Clock.system(), done::release);
    thread.close();
    thread.hurry();
    assertThat(thread.isAlive()).isFalse();
    assertThat(done.availablePermits()).isZero();
  }
}
