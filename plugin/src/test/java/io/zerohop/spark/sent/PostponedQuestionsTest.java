package io.zerohop.spark.sent;

import static org.assertj.core.api.Assertions.assertThat;

import io.zerohop.device.TestClock;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;

class PostponedQuestionsTest {
  private static final Duration PAUSE = Duration.ofSeconds(1);

  private final TestClock clock = TestClock.standing();
  private final PostponedQuestions questions = new PostponedQuestions(clock);
  private final List<Integer> tried = new ArrayList<>();

  private void add(final int number, final int bytes) {
    questions.add(clock.in(PAUSE), bytes, () -> tried.add(number));
  }

  private void tryAgain() {
    questions.due().forEach(Runnable::run);
  }

  @Test
  void eachIsTriedOnceWhenItIsDue() {
    add(1, 10);
    clock.advance(PAUSE.dividedBy(2));
    add(2, 10);
    tryAgain();
    assertThat(tried).isEmpty();
    clock.advance(PAUSE.dividedBy(2));
    tryAgain();
    assertThat(tried).containsExactly(1);
    clock.advance(PAUSE);
    tryAgain();
    assertThat(tried).containsExactly(1, 2);
  }

  @Test
  void theOldestMakeRoomWhenThereAreTooMany() {
    for (int i = 0; i < PostponedQuestions.MAX + 2; i++) {
      add(i, 10);
    }
    clock.advance(PAUSE);
    tryAgain();
    assertThat(tried).hasSize(PostponedQuestions.MAX).startsWith(2);
  }

  @Test
  void theOldestMakeRoomWhenTheyAreTooLong() {
    for (int i = 0; i < 4; i++) {
      add(i, PostponedQuestions.MAX_BYTES / 2);
    }
    clock.advance(PAUSE);
    tryAgain();
    assertThat(tried).containsExactly(2, 3);
    add(4, PostponedQuestions.MAX_BYTES);
    clock.advance(PAUSE);
    tryAgain();
    assertThat(tried).as("the room of those that were tried is free").containsExactly(2, 3, 4);
  }

  @Test
  void whatIsLongerThanAllMayBeTakesNobodysRoom() {
    add(1, 10);
    add(2, PostponedQuestions.MAX_BYTES + 1);
    clock.advance(PAUSE);
    tryAgain();
    assertThat(tried).containsExactly(1);
  }
}
