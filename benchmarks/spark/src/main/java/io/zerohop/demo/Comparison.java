package io.zerohop.demo;

import io.zerohop.workload.Contender;
import io.zerohop.workload.Outcome;
import io.zerohop.workload.ResultFile;
import io.zerohop.workload.Testbed;
import java.io.IOException;
import java.io.PrintStream;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;

/** Runs each query through both contenders, in turns, and keeps the score. */
final class Comparison {
  private static final int YARDSTICK = 0;
  private static final int QUESTIONED = 1;
  private static final int DIFFERENCES_SHOWN = 5;
  private static final double MB = 1e6;
  private static final String HEADING = "%-8s %-12s %8s %10s %10s %7s %10s %10s %10s  %s%n";
  private static final String LINE =
      "%-8s %-12s %8d %10.2f %10.2f %7.2f %10.2f %10.2f %10.2f  %s%n";

  private final List<Contender> contenders;
  private final List<String> queries;
  private final PrintStream out;
  private final List<Double> ratios = new ArrayList<>();
  private long mismatches;
  private int failures;
  private boolean aborted;
  private long peerBytes;
  private long stagedBytes;

  Comparison(final List<Contender> contenders, final List<String> queries, final PrintStream out) {
    if (contenders.size() != 2) {
      throw new IllegalArgumentException("two shuffles are compared, not " + contenders.size());
    }
    this.contenders = contenders;
    this.queries = queries;
    this.out = out;
  }

  void run(final Testbed testbed) throws IOException {
    out.printf(
        Locale.ROOT,
        "ratio: time of %1$s divided by time of %2$s; below 1 %1$s is faster%n",
        name(QUESTIONED),
        name(YARDSTICK));
    out.printf(
        Locale.ROOT,
        HEADING,
        "",
        "query",
        "rows",
        name(YARDSTICK) + " s",
        name(QUESTIONED) + " s",
        "ratio",
        "local MB",
        "peer MB",
        "staged MB",
        "result");
    for (int i = 0; i < queries.size(); i++) {
      final String query = queries.get(i);
      // Who goes first changes, so that neither always finds files warm.
      final int first = i % 2;
      final Outcome[] outcomes = new Outcome[2];
      outcomes[first] = testbed.run(first, query);
      outcomes[1 - first] = testbed.run(1 - first, query);
      final List<String> differences = differences(testbed, query, outcomes);
      count(outcomes, differences);
      show("[" + (i + 1) + "/" + queries.size() + "]", outcomes, differences);
    }
  }

  /** Notes that not every query was run. */
  void abort() {
    aborted = true;
  }

  /**
   * Prints the last line.
   *
   * @param kept the folder that is kept, or null
   * @return the exit status
   */
  int finish(final Path kept) {
    if (kept != null) {
      out.println("kept: " + kept);
    }
    final boolean ok = !aborted && mismatches == 0 && failures == 0 && !ratios.isEmpty();
    final String score =
        String.format(
            Locale.ROOT,
            "queries=%d mismatches=%d peer_bytes=%d staged_bytes=%d ratio_vs_%s=%.3f",
            ratios.size(),
            mismatches,
            peerBytes,
            stagedBytes,
            name(YARDSTICK),
            meanRatio());
    out.println();
    out.println(ok ? "demo: ok " + score : "demo: FAILED failed=" + failures + " " + score);
    return ok ? 0 : 1;
  }

  private List<String> differences(
      final Testbed testbed, final String query, final Outcome[] outcomes) throws IOException {
    if (!outcomes[YARDSTICK].succeeded() || !outcomes[QUESTIONED].succeeded()) {
      return List.of();
    }
    return ResultFile.differences(
        name(YARDSTICK), testbed.result(YARDSTICK, query),
        name(QUESTIONED), testbed.result(QUESTIONED, query));
  }

  private void count(final Outcome[] outcomes, final List<String> differences) {
    mismatches += differences.size();
    for (final Outcome outcome : outcomes) {
      failures += outcome.succeeded() ? 0 : 1;
    }
    if (outcomes[YARDSTICK].succeeded() && outcomes[QUESTIONED].succeeded()) {
      ratios.add(ratio(outcomes));
    }
    peerBytes += outcomes[QUESTIONED].peerBytes();
    stagedBytes += outcomes[QUESTIONED].stagedBytes();
  }

  private void show(
      final String progress, final Outcome[] outcomes, final List<String> differences) {
    final Outcome questioned = outcomes[QUESTIONED];
    final boolean ran = outcomes[YARDSTICK].succeeded() && questioned.succeeded();
    out.printf(
        Locale.ROOT,
        LINE,
        progress,
        questioned.workload(),
        questioned.rows(),
        outcomes[YARDSTICK].seconds(),
        questioned.seconds(),
        ran ? ratio(outcomes) : Double.NaN,
        questioned.localBytes() / MB,
        questioned.peerBytes() / MB,
        questioned.stagedBytes() / MB,
        !ran ? "FAILED" : differences.isEmpty() ? "equal" : differences.size() + " DIFFERENCES");
    differences.stream().limit(DIFFERENCES_SHOWN).forEach(line -> out.println("    " + line));
    for (int lane = 0; lane < outcomes.length; lane++) {
      if (!outcomes[lane].succeeded()) {
        out.println("    " + name(lane) + ": " + outcomes[lane].error());
      }
    }
  }

  private double meanRatio() {
    return Math.exp(ratios.stream().mapToDouble(Math::log).average().orElse(Double.NaN));
  }

  private String name(final int lane) {
    return contenders.get(lane).label();
  }

  private static double ratio(final Outcome[] outcomes) {
    return outcomes[QUESTIONED].seconds() / outcomes[YARDSTICK].seconds();
  }
}
