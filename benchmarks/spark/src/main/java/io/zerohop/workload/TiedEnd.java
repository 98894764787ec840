package io.zerohop.workload;

import java.util.Arrays;
import java.util.List;
import java.util.stream.Collectors;

/**
 * How an answer ends whose limit was reached: the rows that share the last row's sort key may be
 * any of those that tie. It is the first line of a file whose answer has one.
 *
 * <pre>
 * \K TAB ordinals, separated by commas TAB the key's fields, separated by tabs
 * </pre>
 *
 * @param keys the columns that the rows are sorted by, as ordinals from 0
 * @param key these columns of the last row
 */
record TiedEnd(List<Integer> keys, AnswerLine key) {
  private static final String MARK = "\\K";
  private static final int PARTS = 3;

  /** Whether a line is one of these and no row. No row's begins so: a backslash is doubled. */
  static boolean isOne(final String line) {
    return line.startsWith(MARK);
  }

  static TiedEnd parse(final String line) {
    final String[] parts = line.split("\t", PARTS);
    return new TiedEnd(
        Arrays.stream(parts[1].split(",")).map(Integer::valueOf).toList(),
        AnswerLine.parse(parts[2]));
  }

  /** What {@link #parse} reads. */
  String text() {
    final String ordinals = keys.stream().map(String::valueOf).collect(Collectors.joining(","));
    return String.join("\t", MARK, ordinals, key.text());
  }

  /** Whether a row ties with the last one. */
  boolean takes(final AnswerLine row) {
    return row.fields(keys).isCloseTo(key);
  }

  /** Whether two answers end at the same key. */
  boolean isLike(final TiedEnd other) {
    return keys.equals(other.keys) && key.isCloseTo(other.key);
  }
}
