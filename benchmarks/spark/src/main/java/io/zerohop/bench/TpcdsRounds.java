package io.zerohop.bench;

import io.zerohop.cluster.ClusterException;
import io.zerohop.workload.Contender;
import io.zerohop.workload.Outcome;
import io.zerohop.workload.ResultFile;
import io.zerohop.workload.Testbed;
import java.io.IOException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.function.BiFunction;

/**
 * Runs queries in turns, round by round. What fails is noted and does not end the run: when the
 * driver of a contender is lost all are started anew, so that their JVMs stay equally warm. Round 0
 * warms up, and compares rows with those of the last contender, who is the yardstick. For one
 * thread.
 */
final class TpcdsRounds {
  private static final int DIFFERENCES_SHOWN = 3;

  private final Testbed testbed;
  private final List<Contender> contenders;
  private final List<String> queries;
  private final List<Map<String, QueryRuns>> runs = new ArrayList<>();
  private int restarts;

  TpcdsRounds(final Testbed testbed, final List<Contender> contenders, final List<String> queries) {
    this.testbed = testbed;
    this.contenders = contenders;
    this.queries = queries;
    for (final Contender contender : contenders) {
      final Map<String, QueryRuns> all = new LinkedHashMap<>();
      queries.forEach(query -> all.put(query, new QueryRuns(contender.label(), query)));
      runs.add(all);
    }
  }

  /** Starts every contender's cluster. */
  void start() throws IOException {
    for (int lane = 0; lane < contenders.size(); lane++) {
      testbed.start(lane, contenders.get(lane));
    }
    testbed.awaitReady();
  }

  /** Runs each query once through each contender and compares their rows. */
  void compare() throws IOException {
    for (final String query : queries) {
      turn(0, query, testbed::run).forEach((lane, outcome) -> of(lane, query).warmedUp(outcome));
      for (int lane = 0; lane < yardstick(); lane++) {
        compare(lane, query);
      }
    }
  }

  /** Times each query once for each contender, but those that have failed. */
  void time(final int round) throws IOException {
    for (final String query : queries) {
      if (runs.stream().noneMatch(all -> all.get(query).failed())) {
        turn(round, query, testbed::time)
            .forEach((lane, outcome) -> of(lane, query).timed(outcome));
      }
    }
  }

  /** Runs each query once under kills and compares all rows with the yardstick's of before. */
  void kill(final Kills kills) throws IOException {
    for (final String query : queries) {
      if (of(yardstick(), query).failed()) {
        continue;
      }
      final Map<Integer, Integer> before = new LinkedHashMap<>();
      final BiFunction<Integer, String, Outcome> run =
          (lane, name) -> {
            before.put(lane, kills.count(lane));
            return kills.during(
                lane, () -> testbed.run(lane, name, testbed.faultyResult(lane, name)));
          };
      for (final Map.Entry<Integer, Outcome> each : turn(1, query, run).entrySet()) {
        final int lane = each.getKey();
        final boolean same =
            each.getValue().succeeded() && same(query, lane, testbed.faultyResult(lane, query));
        of(lane, query).killed(each.getValue(), same, kills.count(lane) - before.get(lane));
      }
    }
  }

  /** A row for each query and contender. */
  List<Map<String, Object>> rows() {
    return queries.stream()
        .flatMap(query -> runs.stream().map(all -> all.get(query).row()))
        .toList();
  }

  /** A contender's queries that returned the yardstick's rows. */
  long equal(final int lane) {
    return runs.get(lane).values().stream().filter(QueryRuns::isEqual).count();
  }

  /** How many queries failed for a contender. */
  long failed(final int lane) {
    return runs.get(lane).values().stream().filter(QueryRuns::failed).count();
  }

  /** How often all contenders were started anew. */
  int restarts() {
    return restarts;
  }

  /** The queries that failed or returned other rows, for any contender. */
  List<String> bad() {
    return queries.stream()
        .filter(query -> runs.stream().anyMatch(all -> all.get(query).isBad()))
        .toList();
  }

  /** A contender's times beside the yardstick's. */
  QueryRatios ratios(final int lane) {
    return QueryRatios.of(queries, runs.get(lane), runs.get(yardstick()));
  }

  private int yardstick() {
    return contenders.size() - 1;
  }

  private QueryRuns of(final int lane, final String query) {
    return runs.get(lane).get(query);
  }

  private Map<Integer, Outcome> turn(
      final int round, final String query, final BiFunction<Integer, String, Outcome> run)
      throws IOException {
    final Map<Integer, Outcome> outcomes = new LinkedHashMap<>();
    boolean lost = false;
    for (int i = 0; i < contenders.size(); i++) {
      final int lane = (i + round) % contenders.size();
      Outcome outcome;
      try {
        outcome = run.apply(lane, query);
      } catch (final ClusterException e) {
        System.out.println(e.getMessage());
        outcome = Outcome.failed(query, e);
        lost = true;
      }
      outcomes.put(lane, outcome);
      System.out.printf(
          Locale.ROOT,
          "%d %-12s %-10s %s%n",
          round,
          query,
          contenders.get(lane).label(),
          outcome.succeeded()
              ? String.format(
                  Locale.ROOT,
                  "%7.2f s %8d rows %7.1f MB shuffled",
                  outcome.seconds(),
                  outcome.rows(),
                  outcome.shuffleBytes() / 1e6)
              : "FAILED " + outcome.error());
    }
    if (lost) {
      restarts++;
      for (int lane = 0; lane < contenders.size(); lane++) {
        testbed.restart(lane, contenders.get(lane));
      }
    }
    return outcomes;
  }

  private void compare(final int lane, final String query) throws IOException {
    if (of(lane, query).failed() || of(yardstick(), query).failed()) {
      return;
    }
    of(lane, query).compared(same(query, lane, testbed.result(lane, query)));
  }

  private boolean same(final String query, final int lane, final Path rows) throws IOException {
    final List<String> differences =
        ResultFile.differences(
            contenders.get(yardstick()).label(),
            testbed.result(yardstick(), query),
            contenders.get(lane).label(),
            rows);
    if (!differences.isEmpty()) {
      System.out.printf(Locale.ROOT, "  %d DIFFERENCES in %s%n", differences.size(), query);
      differences.stream()
          .limit(DIFFERENCES_SHOWN)
          .forEach(line -> System.out.println("    " + line));
    }
    return differences.isEmpty();
  }
}
