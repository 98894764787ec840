package io.zerohop.spark.executor;

import static org.assertj.core.api.Assertions.assertThat;

import io.zerohop.device.Leaks;
import io.zerohop.device.posix.Clock;
import java.time.Duration;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

@Timeout(60)
class LateCloseTest {
  private final Leaks leaks = new Leaks();
  private final AtomicBoolean inUse = new AtomicBoolean(true);
  private final AtomicInteger tries = new AtomicInteger();
  private final CountDownLatch freed = new CountDownLatch(1);

  private void close() {
    tries.incrementAndGet();
    if (inUse.get()) {
      throw new IllegalStateException("a task still reads");
    }
    freed.countDown();
  }

  @AfterEach
  void noThreadStays() {
    leaks.check();
  }

  @Test
  void whatNobodyUsesIsFreedByTheCaller() {
    inUse.set(false);
    LateClose.of("it", this::close, Clock.system());
    assertThat(tries).hasValue(1);
    assertThat(freed.getCount()).isZero();
  }

  @Test
  void whatATaskUsesIsFreedWhenTheTaskEnds() throws Exception {
    LateClose.of("it", this::close, Clock.system());
    assertThat(freed.getCount()).isEqualTo(1);
    inUse.set(false);
    assertThat(freed.await(20, TimeUnit.SECONDS)).isTrue();
  }

  @Test
  void aTaskThatNeverEndsIsWaitedForALimitedTime() {
    LateClose.of("it", this::close, Duration.ZERO, Clock.system());
    leaks.check(); // Its thread ends, although the task does not.
    assertThat(freed.getCount()).isEqualTo(1);
    assertThat(tries).hasValueGreaterThan(1);
  }

  @Test
  void whatCannotBeFreedAtAllIsTriedOnce() {
    LateClose.of(
        "it",
        () -> {
          tries.incrementAndGet();
          throw new java.io.IOException("broken");
        },
        Clock.system());
    assertThat(tries).hasValue(1);
  }
}
