package io.zerohop.spark.executor;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.zerohop.device.WaitException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.Supplier;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

@Timeout(30)
class StartupTest {
  private static final Duration PATIENCE = Duration.ofSeconds(20);

  private final List<String> closed = new ArrayList<>();
  private final CountDownLatch release = new CountDownLatch(1);
  private final AtomicInteger starts = new AtomicInteger();
  private final Supplier<String> slow =
      () -> {
        starts.incrementAndGet();
        try {
          release.await();
        } catch (final InterruptedException e) {
          throw new IllegalStateException("the start was interrupted", e);
        }
        return "it";
      };

  @AfterEach
  void letGo() {
    release.countDown();
    assertThat(Thread.interrupted()).isFalse();
  }

  private Startup<String> startup(final Duration limit) {
    return new Startup<>("start-of-a-test", limit, closed::add);
  }

  @Test
  void aTaskThatIsCancelledDoesNotEndTheStart() {
    final Startup<String> startup = startup(PATIENCE);
    Thread.currentThread().interrupt();
    assertThatThrownBy(() -> startup.get(slow))
        .isInstanceOfSatisfying(
            WaitException.class,
            e -> assertThat(e.reason()).isEqualTo(WaitException.Reason.CANCELLED));
    assertThat(Thread.interrupted()).as("Spark still sees that it was cancelled").isTrue();
    release.countDown();
    assertThat(startup.get(slow)).isEqualTo("it");
    assertThat(starts).hasValue(1);
  }

  @Test
  void whoAsksLaterGetsWhatWasBegunBefore() {
    final Startup<String> startup = startup(PATIENCE);
    startup.begin(slow);
    startup.begin(() -> "another");
    assertThat(startup.made()).isNull();
    release.countDown();
    assertThat(startup.get(() -> "another")).isEqualTo("it");
    startup.begin(slow);
    assertThat(starts).hasValue(1);
  }

  @Test
  void whatWasBegunAndFailedIsTriedAgain() throws Exception {
    final Startup<String> startup = startup(PATIENCE);
    final CountDownLatch failed = new CountDownLatch(1);
    startup.begin(
        () -> {
          failed.countDown();
          throw new IllegalArgumentException("for now");
        });
    failed.await();
    String made = null;
    while (made == null) {
      try {
        made = startup.get(() -> "it");
      } catch (final IllegalArgumentException stillFailing) {
        assertThat(stillFailing).hasMessage("for now");
      }
    }
    assertThat(made).isEqualTo("it");
  }

  @Test
  void nothingIsBegunAfterTheStop() {
    final Startup<String> startup = startup(PATIENCE);
    startup.stop();
    assertThatThrownBy(() -> startup.begin(slow)).hasMessageContaining("has been stopped");
    assertThat(starts).hasValue(0);
  }

  @Test
  void aFailureIsNotKept() {
    final Startup<String> startup = startup(PATIENCE);
    assertThatThrownBy(
            () ->
                startup.get(
                    () -> {
                      throw new IllegalArgumentException("for now");
                    }))
        .hasMessage("for now");
    assertThat(startup.made()).isNull();
    assertThat(startup.get(() -> "it")).isEqualTo("it");
    assertThat(startup.get(() -> "another")).isEqualTo("it");
  }

  @Test
  void anErrorStaysOne() {
    assertThatThrownBy(
            () ->
                startup(PATIENCE)
                    .get(
                        () -> {
                          throw new NoClassDefFoundError("x");
                        }))
        .isInstanceOf(NoClassDefFoundError.class);
  }

  @Test
  void waitingHasALimit() {
    assertThatThrownBy(() -> startup(Duration.ofMillis(50)).get(slow))
        .isInstanceOfSatisfying(
            WaitException.class,
            e -> assertThat(e.reason()).isEqualTo(WaitException.Reason.TIMEOUT));
  }

  @Test
  void whatIsMadeTooLateIsClosed() throws Exception {
    final Startup<String> startup = startup(PATIENCE);
    final CompletableFuture<String> asked = CompletableFuture.supplyAsync(() -> startup.get(slow));
    while (starts.get() == 0) {
      Thread.sleep(1);
    }
    startup.stop();
    release.countDown();
    assertThatThrownBy(asked::get).hasRootCauseInstanceOf(IllegalStateException.class);
    assertThat(closed).containsExactly("it");
    assertThat(startup.made()).isNull();
  }

  @Test
  void aStartThatFailsAfterTheStopIsNotTriedAgain() throws Exception {
    final Startup<String> startup = startup(PATIENCE);
    final CompletableFuture<String> asked =
        CompletableFuture.supplyAsync(
            () ->
                startup.get(
                    () -> {
                      slow.get();
                      throw new IllegalArgumentException("for now");
                    }));
    while (starts.get() == 0) {
      Thread.sleep(1);
    }
    startup.stop();
    release.countDown();
    assertThatThrownBy(asked::get).hasRootCauseMessage("for now");
    assertThatThrownBy(() -> startup.get(slow))
        .isInstanceOf(IllegalStateException.class)
        .hasMessageContaining("has been stopped");
    assertThat(starts).hasValue(1);
    assertThat(closed).isEmpty();
  }

  @Test
  void stoppingClosesOnceAndEndsIt() {
    final Startup<String> startup = startup(PATIENCE);
    startup.get(() -> "it");
    startup.stop();
    startup.stop();
    assertThat(closed).containsExactly("it");
    assertThat(startup.get(() -> "another")).as("tasks that still run").isEqualTo("it");
  }
}
