package io.zerohop.device;

import java.util.Locale;
import java.util.Map;
import java.util.Set;

/**
 * The table of a state machine: which state may follow which. An enum of states keeps one of
 * itself; whoever has the state guards the field that holds it. Immutable, so thread safe.
 *
 * @param <S> the states
 * @param table what may follow each state, immutable sets; a state that is not a key is final
 */
public record Transitions<S extends Enum<S>>(Map<S, Set<S>> table) {

  /**
   * Goes from one state to the next.
   *
   * @param owner whose state it is, for the message
   * @return the next state, for the owner to keep
   * @throws IllegalStateException if it may not follow; the owner's state stays what it was
   */
  public S go(final S from, final S to, final Object owner) {
    if (!table.getOrDefault(from, Set.of()).contains(to)) {
      throw new IllegalStateException(
          owner + " is " + word(from) + " and cannot become " + word(to));
    }
    return to;
  }

  private static String word(final Enum<?> state) {
    return state.name().toLowerCase(Locale.ROOT).replace('_', ' ');
  }
}
