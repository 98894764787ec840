package io.zerohop.shuffle.transport.remote;

import static org.assertj.core.api.Assertions.assertThat;

import io.zerohop.shuffle.transport.remote.Sends.SendQueue;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;

class SendQueueTest {
  private static final String ONE = "one";
  private static final String OTHER = "other";
  private final List<String> begun = new ArrayList<>();
  private final SendQueue queue = new SendQueue(Runnable::run, 1_000);

  private void submit(final String reader, final int first, final int end) {
    for (int i = first; i < end; i++) {
      final String name = reader + i;
      queue.submit(reader, 1, () -> begun.add(name));
    }
  }

  @Test
  void someAreUnderWayAndTheOthersComeInTheirTurn() {
    submit(ONE, 0, 12);
    assertThat(begun).containsExactly("one0", "one1", "one2", "one3", "one4", "one5");
    queue.ended(ONE, 1);
    queue.ended(ONE, 1);
    assertThat(begun).endsWith("one6", "one7").hasSize(8);
  }

  @Test
  void whatEndsAtOnceLetsTheNextOneBegin() {
    for (int i = 0; i < 20; i++) {
      queue.submit(
          ONE,
          1,
          () -> {
            begun.add(ONE);
            queue.ended(ONE, 1);
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
    queue.ended(ONE, 1);
    queue.ended(ONE, 1);
    queue.ended(ONE, 1);
    queue.ended(ONE, 1);
    assertThat(begun.subList(8, 12)).containsExactlyInAnyOrder("one6", "other2", "one7", "other3");
  }

  @Test
  void whoTakesNothingKeepsPlacesForOthersFree() {
    submit(ONE, 0, 30); // None of them ends.
    for (int i = 0; i < 10; i++) {
      submit(OTHER, i, i + 1);
      assertThat(begun).last().isEqualTo("other" + i);
      queue.ended(OTHER, 1);
    }
  }

  /** Also those of few large requests, which use up the bytes before the places. */
  @Test
  void whoTakesNothingKeepsBytesForOthersFree() {
    for (int i = 0; i < 10; i++) {
      queue.submit(ONE, 300, () -> begun.add(ONE)); // None of them ends.
    }
    assertThat(queue.bytes()).as("six of eight parts of 1,000, as of the places").isEqualTo(600);
    for (int i = 0; i < 10; i++) {
      queue.submit(OTHER, 250, () -> begun.add(OTHER));
      assertThat(begun).last().isEqualTo(OTHER);
      queue.ended(OTHER, 250);
    }
  }

  @Test
  void oneThatIsLargerThanAReadersPartGoesByItself() {
    queue.submit(ONE, 900, () -> begun.add("large"));
    queue.submit(ONE, 100, () -> begun.add("small"));
    assertThat(begun).containsExactly("large");
    queue.ended(ONE, 900);
    assertThat(begun).containsExactly("large", "small");
    queue.ended(ONE, 100);
    assertThat(queue.bytes()).isZero();
    assertThat(queue.readers()).isZero();
  }

  @Test
  void atMostSoManyAreUnderWayForAllTogether() {
    for (int reader = 0; reader < 100; reader++) {
      submit("reader" + reader + '-', 0, 3);
    }
    assertThat(begun).hasSize(SendQueue.AT_ONCE);
    for (int ended = 0; begun.size() < 300; ended++) {
      final String last = begun.get(ended);
      queue.ended(last.substring(0, last.indexOf('-') + 1), 1);
    }
    for (int round = 0; round < 3; round++) {
      final int number = round;
      assertThat(begun.subList(100 * round, 100 * round + 100))
          .as("everybody's first, then everybody's second")
          .filteredOn(name -> name.endsWith("-" + number))
          .hasSizeGreaterThan(90);
    }
  }

  @Test
  void allTogetherHaveNoMoreBytesThanTheLimitButForOneAlone() {
    queue.submit(ONE, 600, () -> begun.add("first"));
    queue.submit(OTHER, 600, () -> begun.add("second"));
    queue.submit(ONE, 5_000, () -> begun.add("third"));
    assertThat(begun).containsExactly("first");
    assertThat(queue.bytes()).isEqualTo(600);
    queue.ended(ONE, 600);
    assertThat(begun).containsExactly("first", "second");
    queue.ended(OTHER, 600);
    assertThat(begun).as("one that is larger than the limit goes alone").endsWith("third");
    queue.ended(ONE, 5_000);
    assertThat(queue.bytes()).isZero();
  }
}
