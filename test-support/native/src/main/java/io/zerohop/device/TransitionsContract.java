package io.zerohop.device;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.util.Arrays;
import java.util.Set;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.TestInstance;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.MethodSource;

/** A table of transitions allows what is written down beside it, and no other pair of states. */
@TestInstance(TestInstance.Lifecycle.PER_CLASS)
public abstract class TransitionsContract<S extends Enum<S>> {
  private final S[] states;
  private final Transitions<S> table;
  private final Set<String> legal;

  /**
   * @param legal all that may happen, each as {@code "FROM -> TO"}
   */
  protected TransitionsContract(
      final S[] states, final Transitions<S> table, final String... legal) {
    this.states = states;
    this.table = table;
    this.legal = Set.of(legal);
  }

  public Stream<Arguments> pairs() {
    return Arrays.stream(states)
        .flatMap(from -> Arrays.stream(states).map(to -> Arguments.of(from, to)));
  }

  @ParameterizedTest(name = "{0} -> {1}")
  @MethodSource("pairs")
  public void aPairIsLegalOrRefused(final S from, final S to) {
    if (legal.contains(from + " -> " + to)) {
      assertThat(table.go(from, to, "it")).isSameAs(to);
    } else {
      assertThatThrownBy(() -> table.go(from, to, "it"))
          .isInstanceOf(IllegalStateException.class)
          .hasMessageMatching("it is [a-z ]+ and cannot become [a-z ]+");
    }
  }

  @Test
  public void whatIsLegalIsSpelledRight() {
    final Set<String> all =
        pairs().map(pair -> pair.get()[0] + " -> " + pair.get()[1]).collect(Collectors.toSet());
    assertThat(all).containsAll(legal);
  }
}
