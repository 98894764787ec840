package io.zerohop.device;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;

class UndoTest {
  private final List<String> closed = new ArrayList<>();

  @Test
  void whatIsNotCompletedIsUndoneFromTheLastOn() {
    try (Undo undo = new Undo(() -> closed.add("first"), () -> closed.add("second"))) {
      undo.add(() -> closed.add("third"));
    }
    assertThat(closed).containsExactly("third", "second", "first");
  }

  @Test
  void whatIsCompletedIsKept() {
    try (Undo undo = new Undo(() -> closed.add("first"))) {
      assertThat(undo.keep("result")).isEqualTo("result");
    }
    try (Undo undo = new Undo(() -> closed.add("second"))) {
      undo.done();
    }
    assertThat(closed).isEmpty();
  }

  @Test
  void aFailureThatUndoesHidesNeitherItsCauseNorTheOthers() {
    final IllegalStateException cause = new IllegalStateException("the step failed");
    final IllegalStateException later = new IllegalStateException("it cannot be closed");
    assertThatThrownBy(
            () -> {
              try (Undo undo = new Undo(() -> closed.add("first"))) {
                undo.add(
                    () -> {
                      throw later;
                    });
                throw cause;
              }
            })
        .isSameAs(cause);
    assertThat(cause.getSuppressed()).containsExactly(later);
    assertThat(closed).containsExactly("first");
  }
}
