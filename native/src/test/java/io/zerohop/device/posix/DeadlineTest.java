package io.zerohop.device.posix;

import static org.assertj.core.api.Assertions.assertThat;

import java.time.Duration;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

@Timeout(20)
class DeadlineTest {

  @Test
  void waitsForItAlsoIfInterrupted() {
    final CountDownLatch latch = new CountDownLatch(1);
    final Thread other = new Thread(latch::countDown);
    Thread.currentThread().interrupt();
    final boolean[] waited = {false};
    final boolean came =
        Deadline.in(Duration.ofSeconds(10))
            .await(
                () -> latch.getCount() == 0,
                millis -> {
                  assertThat(millis).isPositive();
                  if (!waited[0]) {
                    waited[0] = true;
                    other.start();
                    Thread.sleep(millis); // Is interrupted at once.
                  }
                  latch.await(millis, TimeUnit.MILLISECONDS);
                });
    assertThat(came).isTrue();
    assertThat(Thread.interrupted()).isTrue();
  }

  @Test
  void saysWhenItDidNotCome() {
    assertThat(Deadline.in(Duration.ofMillis(20)).await(() -> false, Thread::sleep)).isFalse();
    assertThat(Deadline.in(Duration.ZERO).await(() -> true, Thread::sleep)).isTrue();
    assertThat(Thread.interrupted()).isFalse();
  }
}
