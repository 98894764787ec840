package io.zerohop.gpu;

import io.zerohop.workload.Outcome;
import io.zerohop.workload.ShuffleMeter;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeoutException;
import org.apache.spark.api.java.JavaSparkContext;
import org.apache.spark.sql.SparkSession;

/**
 * Times queries for one shuffle. A row of the result has seconds, the milliseconds of the stages
 * that shuffle, what became of the plan, and a checksum by which the shuffles are compared; or the
 * reason of a failure. A row of the file {@code session.jsonl} beside it has the executors' memory
 * after a round.
 */
final class QueryTimes {
  private final SparkSession spark;
  private final JavaSparkContext context;
  private final QuerySet set;
  private final QueryRunner runner;
  private final ShuffleMeter meter = new ShuffleMeter();
  private final double scale;
  private final Path out;
  private final String shuffle;

  QueryTimes(
      final SparkSession spark,
      final QuerySet set,
      final QueryRunner runner,
      final double scale,
      final Path out,
      final String shuffle) {
    this.spark = spark;
    this.context = new JavaSparkContext(spark.sparkContext());
    this.set = set;
    this.runner = runner;
    this.scale = scale;
    this.out = out;
    this.shuffle = shuffle;
    spark.sparkContext().addSparkListener(meter);
  }

  /**
   * Runs all queries in turns, so that a run that is cut off has each as often as the others. Round
   * 0 warms up.
   *
   * @param answers the folder that gets the rows of round 0; null if they are not kept
   * @return how many runs failed
   */
  int measure(final List<String> queries, final int rounds, final Path answers)
      throws IOException, InterruptedException {
    int failed = 0;
    for (int round = 0; round <= rounds; round++) {
      for (final String query : queries) {
        if (spark.sparkContext().isStopped()) {
          return failed + 1;
        }
        final Map<String, Object> row = new LinkedHashMap<>();
        row.put("case", shuffle);
        row.put("query", query);
        row.put("scale", scale);
        row.put("partitions", spark.conf().get("spark.sql.shuffle.partitions"));
        row.put("iteration", round);
        try {
          measure(query, row, round == 0 ? answers : null);
        } catch (final ExecutionException | TimeoutException e) {
          failed++;
          row.put("error", QueryRunner.reason(e));
          if (spark.sparkContext().isStopped()) {
            return failed; // Its time was up, which says nothing about the query.
          }
        }
        JsonLines.append(out, row);
        if (set.forgetsBetweenQueries()) {
          runner.forgetShuffles();
        }
      }
      runner.forgetShuffles();
      JsonLines.append(out.resolveSibling("session.jsonl"), memory(round));
    }
    return failed;
  }

  /** What the session holds after a round, to see whether it grows. */
  private Map<String, Object> memory(final int round) {
    final Map<String, Object> row = new LinkedHashMap<>();
    row.put("case", shuffle);
    row.put("scale", scale);
    row.put("iteration", round);
    row.putAll(ExecutorGauges.memory(context));
    row.put("classes", ExecutorGauges.classes(context));
    return row;
  }

  private void measure(final String query, final Map<String, Object> row, final Path answers)
      throws IOException, ExecutionException, TimeoutException, InterruptedException {
    final Map<String, Long> before = ExecutorGauges.tiers(context);
    meter.reset();
    final QueryRun run = runner.run(set.query(query, scale));
    final Outcome outcome = meter.outcome(query, run.answer().rows(), run.seconds());
    row.put("seconds", run.seconds());
    row.put("stage_ms", outcome.stageMs());
    row.put("write_ms", outcome.writeNanos() / 1_000_000);
    row.put("fetch_wait_ms", outcome.fetchWaitMs());
    row.put("shuffle_bytes", outcome.shuffleBytes());
    row.put("local_bytes", outcome.localBytes());
    row.put("peer_bytes", outcome.peerBytes());
    row.put("staged_bytes", outcome.stagedBytes());
    row.put("map_tasks_again", outcome.mapTasksAgain());
    ExecutorGauges.putTiers(row, before, ExecutorGauges.tiers(context));
    row.put("gpu_exchanges", run.exchanges().gpu());
    row.put("cpu_exchanges", run.exchanges().cpu());
    row.put("plan", run.plan().toMap());
    row.put("rows", run.answer().rows());
    row.put("checksum", run.answer().checksum());
    if (answers != null) {
      Files.createDirectories(answers);
      run.answer().write(QueryAnswers.file(answers, query));
    }
  }
}
