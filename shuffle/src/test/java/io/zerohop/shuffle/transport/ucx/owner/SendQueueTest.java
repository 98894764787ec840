package io.zerohop.shuffle.transport.ucx.owner;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;

class SendQueueTest {
  private final List<Integer> begun = new ArrayList<>();

  @Test
  void someAreUnderWayAndTheOthersComeInTheirTurn() {
    final SendQueue queue = new SendQueue(Runnable::run);
    for (int i = 0; i < 12; i++) {
      final int number = i;
      queue.submit(() -> begun.add(number));
    }
    assertThat(begun).containsExactly(0, 1, 2, 3, 4, 5, 6, 7);
    queue.ended();
    queue.ended();
    assertThat(begun).endsWith(8, 9).hasSize(10);
  }

  @Test
  void whatEndsAtOnceLetsTheNextOneBegin() {
    final SendQueue queue = new SendQueue(Runnable::run);
    for (int i = 0; i < 20; i++) {
      final int number = i;
      queue.submit(
          () -> {
            begun.add(number);
            queue.ended();
          });
    }
    assertThat(begun).hasSize(20);
  }
}
