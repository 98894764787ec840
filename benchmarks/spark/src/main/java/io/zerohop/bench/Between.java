package io.zerohop.bench;

import io.zerohop.cluster.TwoNodes;
import io.zerohop.workload.Contender;
import io.zerohop.workload.Testbed;
import java.io.IOException;
import java.nio.file.Path;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.concurrent.Callable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Option;

/**
 * Whole jobs between two nodes: the demo's queries that shuffle most, through Zerohop at its
 * defaults, and through sort shuffle at Spark's and without compression, over the same link.
 * Iteration 0 warms up and is kept apart.
 */
@Command(
    name = Between.BENCH,
    mixinStandardHelpOptions = true,
    description = "jobs between two network namespaces, against sort shuffle; needs root")
final class Between implements Callable<Integer> {
  static final String BENCH = "between";
  private static final String FILE = "host_between";

  @Mixin private BenchOptions options;

  @Option(
      names = "--scale",
      paramLabel = "FACTOR",
      defaultValue = "0.5",
      description = "TPC-H scale factor (default: ${DEFAULT-VALUE})")
  private double scale;

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
      description = "what to run (default: q5,q9,q21,repartition,skewed_join)")
  private List<String> queries = List.of("q5", "q9", "q21", "repartition", "skewed_join");

  @Option(
      names = "--gbit",
      paramLabel = "N",
      defaultValue = "0",
      description = "what the link carries in a second, in each direction (default: all it can)")
  private int gigabits;

  private Between() {}

  @Override
  public Integer call() throws IOException, InterruptedException {
    final List<Contender> contenders =
        options.contenders(Contender.ZEROHOP, Contender.SORT, Contender.SORT_UNCOMPRESSED);
    final Measurement measurement =
        options.measurement(
            FILE, Map.of("scale", scale, "iterations", iterations, "gbit", gigabits));
    final Path out = options.out(FILE);
    try (TwoNodes nodes = TwoNodes.make();
        Testbed testbed = options.testbed(BENCH, nodes, contenders.size())) {
      System.out.printf(Locale.ROOT, "generating TPC-H data, scale factor %s ...%n", scale);
      testbed.generate(scale);
      if (gigabits > 0) {
        nodes.limit(gigabits);
      }
      run(new Turns(testbed, contenders), measurement, out);
    }
    System.out.println("wrote " + out);
    return 0;
  }

  private void run(final Turns turns, final Measurement measurement, final Path out)
      throws IOException {
    turns.start();
    for (int iteration = 0; iteration <= iterations; iteration++) {
      for (final String query : queries) {
        turns.time(query, iteration, query, Map.of(), measurement);
      }
      measurement.write(out);
    }
  }
}
