package io.zerohop.spark.executor;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.zerohop.device.ZerohopException;
import io.zerohop.device.ZerohopException.Category;
import io.zerohop.device.posix.Clock;
import io.zerohop.spark.executor.NodeStart.StartAttempts;
import java.time.Duration;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

@Timeout(30)
class StartAttemptsTest {
  private final AtomicInteger starts = new AtomicInteger();

  /** Fails so many times. */
  private String start(final Category category, final int failures) {
    if (starts.incrementAndGet() <= failures) {
      throw new ZerohopException(category, "attempt " + starts.get());
    }
    return "it";
  }

  private static StartAttempts attempts(final Duration pause) {
    return new StartAttempts(3, pause, Clock.system());
  }

  @Test
  void whatMayPassIsTriedAgain() {
    assertThat(attempts(Duration.ZERO).run("it", () -> start(Category.RETRY, 2))).isEqualTo("it");
    assertThat(starts).hasValue(3);
  }

  @Test
  void attemptsHaveAnEnd() {
    assertThatThrownBy(() -> attempts(Duration.ZERO).run("it", () -> start(Category.RETRY, 3)))
        .isInstanceOf(ZerohopException.class)
        .hasMessage("attempt 3");
  }

  @Test
  void whatStaysIsNotTriedAgain() {
    assertThatThrownBy(() -> attempts(Duration.ZERO).run("it", () -> start(Category.FALLBACK, 1)))
        .hasMessage("attempt 1");
    assertThat(starts).hasValue(1);
  }

  @Test
  void anInterruptEndsTheAttempts() {
    Thread.currentThread().interrupt();
    assertThatThrownBy(
            () -> attempts(Duration.ofHours(1)).run("it", () -> start(Category.RETRY, 1)))
        .hasMessage("attempt 1");
    assertThat(Thread.interrupted()).isTrue();
  }
}
