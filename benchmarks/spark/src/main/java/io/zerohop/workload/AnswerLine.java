package io.zerohop.workload;

import java.util.Arrays;
import java.util.Comparator;
import java.util.List;
import java.util.stream.Collectors;

/**
 * One row of an {@link Answer}.
 *
 * @param text the row as {@link ResultFile} has it
 * @param exact its fields that are no doubles
 * @param doubles its fields that are, in their order
 */
record AnswerLine(String text, String exact, List<Double> doubles) {
  private static final double TOLERANCE = 1e-9;

  /**
   * Exact fields first, so that rows which differ in the last digit of a double find each other.
   */
  static final Comparator<AnswerLine> EXACT =
      Comparator.comparing(AnswerLine::exact)
          .thenComparing((a, b) -> Arrays.compare(a.numbers(), b.numbers()));

  /** The same order, but that doubles which are close enough are equal. */
  static final Comparator<AnswerLine> TOLERANT =
      Comparator.comparing(AnswerLine::exact)
          .thenComparing((a, b) -> a.close(b) ? 0 : EXACT.compare(a, b));

  static AnswerLine parse(final String text) {
    final List<String> fields = List.of(text.split("\t", -1));
    return new AnswerLine(
        text,
        fields.stream()
            .map(field -> isDouble(field) ? ResultFile.DOUBLE : field)
            .collect(Collectors.joining("\t")),
        fields.stream()
            .filter(AnswerLine::isDouble)
            .map(field -> Double.valueOf(field.substring(ResultFile.DOUBLE.length())))
            .toList());
  }

  /** Some of its fields, in the order of these ordinals, which count from 0. */
  AnswerLine fields(final List<Integer> ordinals) {
    final String[] fields = text.split("\t", -1);
    return parse(ordinals.stream().map(i -> fields[i]).collect(Collectors.joining("\t")));
  }

  /** Whether it is the same, but for the last digits of doubles. */
  boolean isCloseTo(final AnswerLine other) {
    return TOLERANT.compare(this, other) == 0;
  }

  private static boolean isDouble(final String field) {
    return field.startsWith(ResultFile.DOUBLE);
  }

  private double[] numbers() {
    return doubles.stream().mapToDouble(Double::doubleValue).toArray();
  }

  private boolean close(final AnswerLine other) {
    if (doubles.size() != other.doubles.size()) {
      return false;
    }
    for (int i = 0; i < doubles.size(); i++) {
      if (!close(doubles.get(i), other.doubles.get(i))) {
        return false;
      }
    }
    return true;
  }

  private static boolean close(final double a, final double b) {
    final double apart = Math.abs(a - b);
    return Double.compare(a, b) == 0
        || Double.isFinite(apart) && apart <= TOLERANCE * Math.max(Math.abs(a), Math.abs(b));
  }

  @Override
  public String toString() {
    return text;
  }
}
