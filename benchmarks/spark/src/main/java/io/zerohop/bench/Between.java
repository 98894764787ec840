package io.zerohop.bench;

import io.zerohop.cluster.TwoNodes;
import io.zerohop.workload.Contender;
import io.zerohop.workload.RpcProbe;
import io.zerohop.workload.Testbed;
import java.io.IOException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.concurrent.Callable;
import java.util.stream.DoubleStream;
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
  private static final double MEAN_GOAL = 0.95;
  private static final double WORST_GOAL = 1.05;

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

  @Option(
      names = "--rpc",
      description = "also time Spark's own messages of every executor meanwhile")
  private boolean rpc;

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
        Testbed testbed = options.testbed(BENCH, nodes, contenders.size(), probes())) {
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

  private Map<String, String> probes() {
    return rpc ? Map.of("spark.plugins", RpcProbe.class.getName()) : Map.of();
  }

  private void run(final Turns turns, final Measurement measurement, final Path out)
      throws IOException {
    turns.start();
    for (int iteration = 0; iteration <= iterations; iteration++) {
      for (final String query : queries) {
        turns.time(query, iteration, query, Map.of(), measurement);
      }
      if (iteration > 0) {
        measurement.setFinding("goals", goals(measurement));
      }
      measurement.write(out);
    }
  }

  private List<Map<String, Object>> goals(final Measurement measurement) {
    final double[] ratios = new double[queries.size()];
    for (int i = 0; i < ratios.length; i++) {
      double best = Double.POSITIVE_INFINITY;
      for (final Contender each : List.of(Contender.SORT, Contender.SORT_UNCOMPRESSED)) {
        best = Math.min(best, median(measurement, queries.get(i), each));
      }
      ratios[i] = median(measurement, queries.get(i), Contender.ZEROHOP) / best;
    }
    final String link = gigabits > 0 ? ", " + gigabits + " Gb/s" : "";
    final double mean = Math.exp(Arrays.stream(ratios).map(Math::log).average().orElseThrow());
    final double worst = Arrays.stream(ratios).max().orElseThrow();
    final List<Map<String, Object>> goals = new ArrayList<>();
    goals.add(
        goal("geometric mean of times over the faster sort shuffle's" + link, MEAN_GOAL, mean));
    goals.add(goal("slowest query over the faster sort shuffle's" + link, WORST_GOAL, worst));
    if (rpc) {
      final double own = slowMessage(measurement, Contender.ZEROHOP);
      final double sort = slowMessage(measurement, Contender.SORT);
      goals.add(goal("99th percentile of Spark's messages over sort shuffle's", 1.0, own / sort));
    }
    return goals;
  }

  /** Microseconds that all but one in a hundred messages took less than: median of all runs. */
  private static double slowMessage(final Measurement measurement, final Contender contender) {
    return median(
        measurement.rows().stream()
            .filter(row -> contender.label().equals(row.get("case")))
            .filter(row -> (int) row.get("iteration") > 0)
            .map(row -> (Map<?, ?>) row.get("rpc"))
            .mapToDouble(said -> (long) said.get("p99_us")));
  }

  private static Map<String, Object> goal(final String what, final double most, final double is) {
    final Map<String, Object> goal = new LinkedHashMap<>();
    goal.put("goal", what);
    goal.put("at_most", most);
    goal.put("value", Math.round(1000 * is) / 1000.0);
    return goal;
  }

  /** Of the timed iterations; infinite for who did not take part. */
  private static double median(
      final Measurement measurement, final String query, final Contender contender) {
    return median(
        measurement.rows().stream()
            .filter(row -> query.equals(row.get("query")))
            .filter(row -> contender.label().equals(row.get("case")))
            .filter(row -> (int) row.get("iteration") > 0)
            .mapToDouble(row -> (double) row.get("seconds")));
  }

  private static double median(final DoubleStream values) {
    final double[] sorted = values.sorted().toArray();
    final int middle = sorted.length / 2;
    if (sorted.length == 0) {
      return Double.POSITIVE_INFINITY;
    }
    return sorted.length % 2 == 1 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
  }
}
