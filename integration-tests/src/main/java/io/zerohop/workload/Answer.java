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
import java.util.stream.Stream;
import java.util.zip.CRC32C;
import java.util.zip.GZIPInputStream;
import java.util.zip.GZIPOutputStream;
import org.apache.spark.sql.Row;

/**
 * What a query returned, to be compared with what it returned elsewhere: the lines of a {@link
 * ResultFile}, in whatever order they came. Doubles may differ by 1e-9 of their value, since their
 * sums depend on the order of the rows; all else is exact.
 */
public final class Answer {
  private final List<AnswerLine> lines;

  private Answer(final Stream<String> lines) {
    this.lines = lines.map(AnswerLine::parse).sorted(AnswerLine.EXACT).toList();
  }

  /** The answer that these rows are. */
  public static Answer of(final List<Row> rows) {
    return new Answer(rows.stream().map(ResultFile::line));
  }

  /** Reads what {@link #write} wrote. */
  public static Answer read(final Path file) throws IOException {
    try (BufferedReader reader =
        new BufferedReader(
            new InputStreamReader(
                new GZIPInputStream(Files.newInputStream(file)), StandardCharsets.UTF_8))) {
      return new Answer(reader.lines());
    }
  }

  /** Writes it compressed, one line for each row. */
  public void write(final Path file) throws IOException {
    try (BufferedWriter writer =
        new BufferedWriter(
            new OutputStreamWriter(
                new GZIPOutputStream(Files.newOutputStream(file)), StandardCharsets.UTF_8))) {
      for (final AnswerLine line : lines) {
        writer.write(line.text() + "\n");
      }
    }
  }

  /** How many rows it has. */
  public int rows() {
    return lines.size();
  }

  /** Eight hexadecimal digits that are alike where all rows are, to the last digit of a double. */
  public String checksum() {
    final CRC32C sum = new CRC32C();
    lines.forEach(line -> sum.update((line.text() + "\n").getBytes(StandardCharsets.UTF_8)));
    return String.format(Locale.ROOT, "%08x", sum.getValue());
  }

  /**
   * Says how this answer differs from the one that is expected.
   *
   * @return one line per row that only one of them has; none if they are equal
   */
  public List<String> differences(final Answer expected) {
    return ResultFile.differences("expected", expected.lines, "here", lines, AnswerLine.TOLERANT);
  }
}
