package io.zerohop.workload;

import java.io.BufferedReader;
import java.io.BufferedWriter;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.OutputStreamWriter;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Locale;
import java.util.Optional;
import java.util.zip.CRC32C;
import java.util.zip.GZIPInputStream;
import java.util.zip.GZIPOutputStream;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;

/**
 * What a query returned, to be compared with what it returned elsewhere: the lines of a {@link
 * ResultFile}, in whatever order they came.
 *
 * <p>The rule of equality: rows are compared without regard to order, and exactly, but doubles may
 * differ by 1e-9 of their value, since their sums depend on the order of the rows. For queries of
 * {@link Workload#TIED} whose {@code LIMIT} was reached, rows whose sort key comes before that of
 * the last row are equal, and of those that share the last row's sort key there are as many; which
 * of them is left open by SQL. An answer that has two different last keys is compared as a whole.
 */
public final class Answer {
  private final List<AnswerLine> lines;
  private final Optional<TiedEnd> end;

  private Answer(final List<AnswerLine> lines, final Optional<TiedEnd> end) {
    this.lines = lines.stream().sorted(AnswerLine.EXACT).toList();
    this.end = end;
  }

  /** The answer that these rows are, every one of which counts. */
  public static Answer of(final List<Row> rows) {
    return new Answer(lines(rows), Optional.empty());
  }

  /**
   * The answer to a workload, which knows whether its limit may cut through rows that tie.
   *
   * @param query the workload's query
   * @param rows what it returned, in that order
   */
  public static Answer of(final Workload workload, final Dataset<Row> query, final List<Row> rows) {
    return workload.mayTie() ? of(SortedLimit.of(query), rows) : of(rows);
  }

  /** The answer to a query with such a limit, or none. */
  static Answer of(final Optional<SortedLimit> limit, final List<Row> rows) {
    return new Answer(
        lines(rows),
        limit
            .filter(some -> some.isReached(rows))
            .map(some -> new TiedEnd(some.keys(), some.key(rows.get(rows.size() - 1)))));
  }

  private static List<AnswerLine> lines(final List<Row> rows) {
    return rows.stream().map(ResultFile::line).map(AnswerLine::parse).toList();
  }

  /** Reads what {@link #write} wrote. */
  public static Answer read(final Path file) throws IOException {
    try (BufferedReader reader =
        new BufferedReader(
            new InputStreamReader(
                new GZIPInputStream(Files.newInputStream(file)), StandardCharsets.UTF_8))) {
      final List<String> lines = reader.lines().toList();
      final boolean tied = !lines.isEmpty() && TiedEnd.isOne(lines.get(0));
      return new Answer(
          lines.stream().skip(tied ? 1 : 0).map(AnswerLine::parse).toList(),
          tied ? Optional.of(TiedEnd.parse(lines.get(0))) : Optional.empty());
    }
  }

  /** Writes it compressed, one line for each row, after the {@link TiedEnd} if there is one. */
  public void write(final Path file) throws IOException {
    try (BufferedWriter writer =
        new BufferedWriter(
            new OutputStreamWriter(
                new GZIPOutputStream(Files.newOutputStream(file)), StandardCharsets.UTF_8))) {
      if (end.isPresent()) {
        writer.write(end.get().text() + "\n");
      }
      for (final AnswerLine line : lines) {
        writer.write(line.text() + "\n");
      }
    }
  }

  /** How many rows it has. */
  public int rows() {
    return lines.size();
  }

  /** How many of them may be any that tie. */
  public int tied() {
    return rows() - untied().size();
  }

  /**
   * Eight hexadecimal digits that are alike where all rows are that must be, to the last digit of a
   * double, and their number is.
   */
  public String checksum() {
    final CRC32C sum = new CRC32C();
    untied().forEach(line -> update(sum, line.text()));
    end.ifPresent(tied -> update(sum, tied.text() + "\t" + tied()));
    return String.format(Locale.ROOT, "%08x", sum.getValue());
  }

  private static void update(final CRC32C sum, final String line) {
    sum.update((line + "\n").getBytes(StandardCharsets.UTF_8));
  }

  /**
   * Says how this answer differs from the one that is expected.
   *
   * @return one line per row that only one of them has; none if they are equal
   */
  public List<String> differences(final Answer expected) {
    return differences("expected", expected, "here");
  }

  /** The same with names for the expected one and for this one. */
  List<String> differences(final String expectedName, final Answer expected, final String name) {
    final boolean tied =
        rows() == expected.rows()
            && end.isPresent()
            && expected.end.isPresent()
            && end.get().isLike(expected.end.get());
    return ResultFile.differences(
        expectedName,
        tied ? expected.untied() : expected.lines,
        name,
        tied ? untied() : lines,
        AnswerLine.TOLERANT);
  }

  private List<AnswerLine> untied() {
    return end.map(tied -> lines.stream().filter(line -> !tied.takes(line)).toList()).orElse(lines);
  }
}
