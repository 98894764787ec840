package io.zerohop.shuffle.transport.remote.owner;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;

class SendQueueTest {
  private static final String ONE = "one";
  private static final String OTHER = "other";
  private final List<String> begun = new ArrayList<>();
  private final SendQueue queue = new SendQueue(Runnable::run);

  private void submit(final String reader, final int first, final int end) {
    for (int i = first; i < end; i++) {
      final String name = reader + i;
      queue.submit(reader, () -> begun.add(name));
    }
  }

  @Test
  void someAreUnderWayAndTheOthersComeInTheirTurn() {
    submit(ONE, 0, 12);
    assertThat(begun).containsExactly("one0", "one1", "one2", "one3", "one4", "one5");
    queue.ended(ONE);
    queue.ended(ONE);
    assertThat(begun).endsWith("one6", "one7").hasSize(8);
  }

  @Test
  void whatEndsAtOnceLetsTheNextOneBegin() {
    for (int i = 0; i < 20; i++) {
      queue.submit(
          ONE,
          () -> {
            begun.add(ONE);
            queue.ended(ONE);
          });
    }
    assertThat(begun).hasSize(20);
    assertThat(queue.readers()).as("of readers that have nothing here nothing is kept").isZero();
  }

  @Test
  void readersTakeTurns() {
    submit(ONE, 0, 30);
    submit(OTHER, 0, 5);
    assertThat(begun).as("two places are left for others").endsWith("other0", "other1").hasSize(8);
    queue.ended(ONE);
    queue.ended(ONE);
    queue.ended(ONE);
    queue.ended(ONE);
    assertThat(begun.subList(8, 12)).containsExactlyInAnyOrder("one6", "other2", "one7", "other3");
  }

  @Test
  void whoTakesNothingKeepsPlacesForOthersFree() {
    submit(ONE, 0, 30); // None of them ends.
    for (int i = 0; i < 10; i++) {
      submit(OTHER, i, i + 1);
      assertThat(begun).last().isEqualTo("other" + i);
      queue.ended(OTHER);
    }
  }

  @Test
  void atMostSoManyAreUnderWayForAllTogether() {
    for (int reader = 0; reader < 100; reader++) {
      submit("reader" + reader + '-', 0, 3);
    }
    assertThat(begun).hasSize(SendQueue.AT_ONCE);
    for (int ended = 0; begun.size() < 300; ended++) {
      final String last = begun.get(ended);
      queue.ended(last.substring(0, last.indexOf('-') + 1));
    }
    for (int round = 0; round < 3; round++) {
      final int number = round;
      assertThat(begun.subList(100 * round, 100 * round + 100))
          .as("everybody's first, then everybody's second")
          .filteredOn(name -> name.endsWith("-" + number))
          .hasSizeGreaterThan(90);
    }
  }
}
