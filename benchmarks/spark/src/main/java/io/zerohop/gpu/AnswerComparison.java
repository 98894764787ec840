package io.zerohop.gpu;

import io.zerohop.workload.Answer;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;

/**
 * Compares answers that were kept with those that are expected. Needs no Spark, so that contenders
 * can run beside one another and be compared afterwards.
 */
public final class AnswerComparison {
  private static final int SHOWN = 4;

  private AnswerComparison() {}

  /**
   * Exits with 1 if an answer is missing or differs.
   *
   * @param args {@code tpch} or {@code tpcds}, the folder of the expected answers, the folder of
   *     others, the file to append a row for each query to, and the names of queries if not all are
   *     wanted
   */
  public static void main(final String[] args) throws IOException {
    final List<String> queries =
        args.length > 4 ? List.of(args).subList(4, args.length) : QuerySet.named(args[0]).queries();
    final Path expected = Path.of(args[1]);
    final Path here = Path.of(args[2]);
    int equal = 0;
    for (final String query : queries) {
      final Path known = QueryAnswers.file(expected, query);
      final Path got = QueryAnswers.file(here, query);
      final Map<String, Object> row = new LinkedHashMap<>();
      row.put("case", here.getFileName().toString());
      row.put("query", query);
      if (!Files.exists(known) || !Files.exists(got)) {
        row.put("missing", Files.exists(got) ? "expected" : "answer");
      } else {
        final List<String> differences = Answer.read(got).differences(Answer.read(known));
        row.put("equal", differences.isEmpty());
        equal += differences.isEmpty() ? 1 : 0;
        differences.stream().limit(SHOWN).forEach(line -> System.out.println(query + ": " + line));
      }
      JsonLines.append(Path.of(args[3]), row);
    }
    System.out.printf(
        Locale.ROOT, "%s: %d of %d equal%n", here.getFileName(), equal, queries.size());
    System.exit(equal == queries.size() ? 0 : 1);
  }
}
