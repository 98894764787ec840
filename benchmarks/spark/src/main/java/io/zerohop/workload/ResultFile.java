package io.zerohop.workload;

import java.io.IOException;
import java.math.BigDecimal;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Collections;
import java.util.Comparator;
import java.util.List;
import java.util.stream.IntStream;
import org.apache.spark.sql.Row;

/**
 * A query's rows, one line each, as an {@link Answer} keeps them in a file. Exact: decimals keep
 * their scale, null differs from any value. Doubles are marked, for readers that allow for their
 * last digits.
 */
public final class ResultFile {
  /** What a double begins with. No text does: a backslash of its own is doubled. */
  static final String DOUBLE = "\\D";

  private static final String NULL = "\\N";

  private ResultFile() {}

  /** Writes the rows, every one of which counts. */
  public static void write(final Path file, final List<Row> rows) throws IOException {
    Answer.of(rows).write(file);
  }

  /**
   * Says how two results differ: one line per row that only one side has, the row's origin first.
   *
   * @return no line if they are equal by the rule of {@link Answer}
   */
  public static List<String> differences(
      final String leftName, final Path left, final String rightName, final Path right)
      throws IOException {
    return Answer.read(right).differences(leftName, Answer.read(left), rightName);
  }

  /** The same for rows that have been read, sorted by the order that is given. */
  static <T> List<String> differences(
      final String leftName,
      final List<T> leftRows,
      final String rightName,
      final List<T> rightRows,
      final Comparator<T> rowOrder) {
    final List<String> differences = new ArrayList<>();
    int l = 0;
    int r = 0;
    while (l < leftRows.size() || r < rightRows.size()) {
      final int order = compare(leftRows, l, rightRows, r, rowOrder);
      if (order < 0) {
        differences.add("only " + leftName + ": " + leftRows.get(l));
      } else if (order > 0) {
        differences.add("only " + rightName + ": " + rightRows.get(r));
      }
      l += order <= 0 ? 1 : 0;
      r += order >= 0 ? 1 : 0;
    }
    return Collections.unmodifiableList(differences);
  }

  private static <T> int compare(
      final List<T> left,
      final int l,
      final List<T> right,
      final int r,
      final Comparator<T> rowOrder) {
    if (l == left.size()) {
      return 1;
    }
    return r == right.size() ? -1 : rowOrder.compare(left.get(l), right.get(r));
  }

  /** A row as one line, its fields separated by tabs. */
  static String line(final Row row) {
    return String.join(
        "\t", IntStream.range(0, row.length()).mapToObj(i -> field(row.get(i))).toList());
  }

  private static String field(final Object value) {
    if (value == null) {
      return NULL;
    }
    if (value instanceof Double) {
      return DOUBLE + value;
    }
    final String text =
        value instanceof BigDecimal decimal ? decimal.toPlainString() : value.toString();
    return text.replace("\\", "\\\\").replace("\t", "\\t").replace("\n", "\\n");
  }
}
