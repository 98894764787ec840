package io.zerohop.bench;

import io.zerohop.cluster.ClusterException;
import io.zerohop.cluster.ExecutorMemory;
import io.zerohop.workload.Contender;
import io.zerohop.workload.Outcome;
import io.zerohop.workload.Testbed;
import io.zerohop.workload.Workload;
import java.io.IOException;
import java.nio.file.Path;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.Callable;
import java.util.stream.Collectors;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Option;

/**
 * The demo's queries through Zerohop and through sort shuffle as it is and without compression, all
 * with their files in memory. Iteration 0 warms up and is kept apart; memory is watched in a round
 * of its own, which is not timed.
 */
@Command(
    name = HostJob.BENCH,
    mixinStandardHelpOptions = true,
    description = "TPC-H queries, a big repartition and a skewed join, against sort shuffle")
final class HostJob implements Callable<Integer> {
  static final String BENCH = "host_job";

  @Mixin private BenchOptions options;

  /** What needs more data than the others to take 5 s. */
  private static final Set<String> QUICK = Set.of("q3", "q4", "q10", "q12", "q13", "q16");

  @Option(
      names = "--scale",
      paramLabel = "FACTOR",
      defaultValue = "1.25",
      description = "TPC-H scale factor; a query should take 5 s (default: ${DEFAULT-VALUE})")
  private double scale;

  @Option(
      names = "--quick-scale",
      paramLabel = "FACTOR",
      defaultValue = "3",
      description = "the same for the quick queries (default: ${DEFAULT-VALUE})")
  private double quickScale;

  @Option(
      names = "--iterations",
      paramLabel = "N",
      defaultValue = "7",
      description = "timed rounds (default: ${DEFAULT-VALUE})")
  private int iterations;

  @Option(
      names = "--queries",
      split = ",",
      paramLabel = "QUERY",
      description = "only these (default: all of the demo's)")
  private List<String> queries = Workload.ALL;

  private HostJob() {}

  @Override
  public Integer call() throws IOException, InterruptedException {
    final List<Contender> contenders =
        options.contenders(Contender.ZEROHOP, Contender.SORT, Contender.SORT_UNCOMPRESSED);
    final Measurement measurement =
        options.measurement(
            BENCH, Map.of("scale", scale, "quick_scale", quickScale, "iterations", iterations));
    final Path out = options.out(BENCH);
    final Map<Boolean, List<String>> byQuickness =
        queries.stream().collect(Collectors.partitioningBy(QUICK::contains));
    run(contenders, scale, byQuickness.get(false), measurement, out);
    run(contenders, quickScale, byQuickness.get(true), measurement, out);
    System.out.println("wrote " + out);
    return 0;
  }

  /** All rounds of some queries, on clusters of their own. */
  private void run(
      final List<Contender> contenders,
      final double factor,
      final List<String> some,
      final Measurement measurement,
      final Path out)
      throws IOException, InterruptedException {
    if (some.isEmpty()) {
      return;
    }
    try (Testbed testbed = options.testbed(QUICK.containsAll(some) ? "quick" : "long")) {
      System.out.printf(Locale.ROOT, "generating TPC-H data, scale factor %s ...%n", factor);
      testbed.generate(factor);
      final Turns turns = new Turns(testbed, contenders);
      turns.start();
      for (int iteration = 0; iteration <= iterations; iteration++) {
        for (final String query : some) {
          turns.time(query, iteration, query, Map.of("scale", factor), measurement);
        }
        measurement.write(out);
      }
      for (int lane = 0; lane < contenders.size(); lane++) {
        watchMemory(testbed, lane, contenders.get(lane), some, measurement);
        measurement.write(out);
      }
    }
  }

  private void watchMemory(
      final Testbed testbed,
      final int lane,
      final Contender contender,
      final List<String> some,
      final Measurement measurement) {
    for (final String query : some) {
      try (ExecutorMemory memory = new ExecutorMemory(testbed.driver(lane))) {
        final Outcome outcome = testbed.run(lane, query);
        if (!outcome.succeeded()) {
          throw new ClusterException(
              contender.label() + " failed at " + query + ": " + outcome.error());
        }
        final Map<String, Object> row = new LinkedHashMap<>();
        row.put("case", contender.label());
        row.put("query", outcome.workload());
        row.put("pss_peak_bytes", memory.peakBytes());
        row.put("pss_shared_peak_bytes", memory.peakSharedBytes());
        measurement.add(row);
      }
    }
  }
}
