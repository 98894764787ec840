package io.zerohop.gpu;

import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.SerializationFeature;
import io.zerohop.workload.Answer;
import io.zerohop.workload.Outcome;
import io.zerohop.workload.ShuffleMeter;
import java.io.IOException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeoutException;
import org.apache.spark.sql.SparkSession;

/**
 * Compares every row that the GPU returns with the CPU's and looks which way the shuffles' bytes
 * went. The results are written after each query.
 */
final class QueryCheck {
  private static final int SHOWN = 6;

  private final QuerySet set;
  private final QueryRunner runner;
  private final QueryAnswers answers;
  private final double scale;
  private final Path out;
  private final ShuffleMeter meter = new ShuffleMeter();
  private final List<Map<String, Object>> results = new ArrayList<>();
  private final boolean onGpu;
  private int bad;

  QueryCheck(
      final SparkSession spark,
      final QuerySet set,
      final QueryRunner runner,
      final QueryAnswers answers,
      final double scale,
      final Path out) {
    this.set = set;
    this.runner = runner;
    this.answers = answers;
    this.scale = scale;
    this.out = out;
    this.onGpu = spark.sparkContext().getConf().get("spark.plugins", "").contains("SQLPlugin");
    spark.sparkContext().addSparkListener(meter);
  }

  /**
   * Checks each of the queries once.
   *
   * @return how many failed, returned other rows, had bytes that were staged, or shuffled nothing
   *     on the GPU where RAPIDS is there
   */
  int check(final List<String> queries) throws IOException, InterruptedException {
    final ObjectMapper json = new ObjectMapper();
    for (final String query : queries) {
      final Map<String, Object> result = new LinkedHashMap<>();
      result.put("case", query);
      result.put("scale", scale);
      result.put("expected", answers.knows(query) ? "known" : "asked");
      result.put("equal", false);
      try {
        check(query, result);
      } catch (final ExecutionException | TimeoutException e) {
        result.put("error", QueryRunner.reason(e));
      }
      bad += good(result) ? 0 : 1;
      results.add(result);
      json.writer(SerializationFeature.INDENT_OUTPUT)
          .writeValue(out.toFile(), Map.of("rows", results));
      System.out.println(json.writeValueAsString(result));
      runner.forgetShuffles();
    }
    System.out.printf(Locale.ROOT, "checked %d, bad %d%n", results.size(), bad);
    return bad;
  }

  private void check(final String query, final Map<String, Object> result)
      throws IOException, ExecutionException, TimeoutException, InterruptedException {
    final Answer expected = answers.of(query);
    meter.reset();
    final QueryRun run = runner.run(set.query(query, scale));
    final Outcome outcome = meter.outcome(query, run.answer().rows(), run.seconds());
    final List<String> differences = run.answer().differences(expected);
    result.put("rows", run.answer().rows());
    result.put("equal", differences.isEmpty());
    result.put("seconds", run.seconds());
    result.put("data_size", run.plan().dataSize());
    result.put("gpu_exchanges", run.exchanges().gpu());
    result.put("cpu_exchanges", run.exchanges().cpu());
    result.put("local_bytes", outcome.localBytes());
    result.put("peer_bytes", outcome.peerBytes());
    result.put("staged_bytes", outcome.stagedBytes());
    differences.stream().limit(SHOWN).forEach(System.out::println);
  }

  private boolean good(final Map<String, Object> result) {
    return Boolean.TRUE.equals(result.get("equal"))
        && result.get("staged_bytes") instanceof Long staged
        && staged == 0
        && (!onGpu || result.get("gpu_exchanges") instanceof Integer gpu && gpu > 0);
  }
}
