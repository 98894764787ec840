package io.zerohop.gpu;

import io.zerohop.workload.Answer;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Locale;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeoutException;
import org.apache.spark.sql.SparkSession;

/**
 * The CPU's answers to a set of queries. They are the same wherever they are asked for, as the
 * tables are, so a folder keeps those that are known and the CPU is asked for the rest.
 */
final class QueryAnswers {
  private static final String ON_GPU = "spark.rapids.sql.enabled";

  private final SparkSession spark;
  private final QuerySet set;
  private final QueryRunner runner;
  private final Path folder;
  private final double scale;

  /**
   * Takes what there is.
   *
   * @param folder the known answers for this scale; need not be there
   */
  QueryAnswers(
      final SparkSession spark,
      final QuerySet set,
      final QueryRunner runner,
      final Path folder,
      final double scale) {
    this.spark = spark;
    this.set = set;
    this.runner = runner;
    this.folder = folder;
    this.scale = scale;
  }

  /** Whether a query's answer need not be asked for. */
  boolean knows(final String query) {
    return Files.exists(file(query));
  }

  /** The CPU's answer. RAPIDS is on afterwards. */
  Answer of(final String query)
      throws IOException, ExecutionException, TimeoutException, InterruptedException {
    if (knows(query)) {
      return Answer.read(file(query));
    }
    spark.conf().set(ON_GPU, "false");
    try {
      return runner.run(set.query(query, scale)).answer();
    } finally {
      spark.conf().set(ON_GPU, "true");
    }
  }

  /**
   * Writes those that are not known yet.
   *
   * @return how many could not be had
   */
  int write(final List<String> queries) throws IOException, InterruptedException {
    int failed = 0;
    Files.createDirectories(folder);
    for (final String query : queries) {
      final long start = System.currentTimeMillis();
      try {
        final Answer answer = of(query);
        answer.write(file(query));
        System.out.printf(
            Locale.ROOT,
            "%s: %d rows, %s, %d ms%n",
            query,
            answer.rows(),
            answer.checksum(),
            System.currentTimeMillis() - start);
      } catch (final ExecutionException | TimeoutException e) {
        failed++;
        System.out.println(query + ": " + QueryRunner.reason(e));
      }
      runner.forgetShuffles();
    }
    return failed;
  }

  private Path file(final String query) {
    return file(folder, query);
  }

  /** Where a folder has the answer to a query. */
  static Path file(final Path folder, final String query) {
    return folder.resolve(query + ".gz");
  }
}
