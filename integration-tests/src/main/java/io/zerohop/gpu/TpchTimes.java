package io.zerohop.gpu;

import io.zerohop.workload.Answer;
import io.zerohop.workload.Outcome;
import io.zerohop.workload.ShuffleMeter;
import io.zerohop.workload.Workload;
import java.io.IOException;
import java.nio.file.Path;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeoutException;
import org.apache.spark.sql.SparkSession;

/**
 * Times queries for one shuffle. A row of the result has seconds, the milliseconds of the stages
 * that shuffle, and a checksum by which the shuffles are compared; or the reason of a failure.
 */
final class TpchTimes {
  private final SparkSession spark;
  private final QueryRunner runner;
  private final ShuffleMeter meter = new ShuffleMeter();
  private final double scale;
  private final Path out;
  private final String shuffle;

  TpchTimes(
      final SparkSession spark,
      final QueryRunner runner,
      final double scale,
      final Path out,
      final String shuffle) {
    this.spark = spark;
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
   * @return how many runs failed
   */
  int measure(final List<String> queries, final int rounds)
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
        row.put("iteration", round);
        try {
          measure(query, row);
        } catch (final ExecutionException | TimeoutException e) {
          failed++;
          row.put("error", QueryRunner.reason(e));
        }
        JsonLines.append(out, row);
        runner.forgetShuffles();
      }
    }
    return failed;
  }

  private void measure(final String query, final Map<String, Object> row)
      throws ExecutionException, TimeoutException, InterruptedException {
    meter.reset();
    final QueryRun run = runner.run(Workload.named(query, scale).query());
    final Answer answer = Answer.of(run.rows());
    final Outcome outcome = meter.outcome(query, answer.rows(), run.seconds());
    row.put("seconds", run.seconds());
    row.put("stage_ms", outcome.stageMs());
    row.put("shuffle_bytes", outcome.shuffleBytes());
    row.put("local_bytes", outcome.localBytes());
    row.put("peer_bytes", outcome.peerBytes());
    row.put("staged_bytes", outcome.stagedBytes());
    row.put("gpu_exchanges", run.exchanges().gpu());
    row.put("cpu_exchanges", run.exchanges().cpu());
    row.put("rows", answer.rows());
    row.put("checksum", answer.checksum());
  }
}
