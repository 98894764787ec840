package io.zerohop.bench;

import io.zerohop.workload.Contender;
import io.zerohop.workload.Tables;
import io.zerohop.workload.Testbed;
import io.zerohop.workload.Workload;
import java.io.IOException;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.UUID;
import java.util.concurrent.Callable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Option;

/**
 * All queries of TPC-DS through Zerohop and through sort shuffle with its files in memory, at
 * Spark's defaults: nothing is set but the shuffle and the size of the cluster.
 */
@Command(
    name = "tpcds",
    mixinStandardHelpOptions = true,
    description = "TPC-DS at Spark's defaults, against sort shuffle; rows are compared, too")
final class Tpcds implements Callable<Integer> {
  private static final String BENCH = "host_tpcds";
  private static final String KILLS_BENCH = "host_kills";
  private static final double MEAN_GOAL = 0.95;
  private static final double SHUFFLING_GOAL = 0.90;
  private static final double WORST_GOAL = 1.05;
  private static final long SHUFFLING_BYTES = 1_000_000;

  @Mixin private ClusterOptions options;

  @Option(
      names = "--scale",
      paramLabel = "FACTOR",
      defaultValue = "1",
      description = "TPC-DS scale factor (default: ${DEFAULT-VALUE})")
  private double scale;

  @Option(
      names = "--data",
      paramLabel = "DIR",
      description = "tables of that scale, written if it is not there (default: the run's own)")
  private Path data;

  @Option(
      names = "--iterations",
      paramLabel = "N",
      defaultValue = "3",
      description = "timed rounds (default: ${DEFAULT-VALUE})")
  private int iterations;

  @Option(
      names = "--queries",
      split = ",",
      paramLabel = "QUERY",
      description = "only these, for example q3,q14a (default: all)")
  private List<String> names = List.of();

  @Option(
      names = "--pool",
      paramLabel = "SIZE",
      description = "spark.zerohop.pool.size for a run that only compares rows")
  private String pool;

  @Option(
      names = "--kill-every",
      paramLabel = "SECONDS",
      description = "afterwards each query once more, an executor killed that often; for kills.py")
  private Integer killEvery;

  private Tpcds() {}

  @Override
  public Integer call() throws IOException, InterruptedException {
    final List<String> queries =
        names.isEmpty() ? Workload.TPCDS : names.stream().map(name -> "tpcds:" + name).toList();
    queries.forEach(Workload::named);
    // The last one is the yardstick.
    final List<Contender> contenders = options.contenders(Contender.ZEROHOP, Contender.SORT);
    final Path out = options.out(bench());
    final List<String> bad;
    try (Testbed testbed = options.testbed(BENCH, conf())) {
      System.out.println("TPC-DS tables of scale factor " + scale + " ...");
      testbed.use(Tables.TPCDS, data == null ? testbed.data() : data, scale);
      final TpcdsRounds rounds = new TpcdsRounds(testbed, contenders, queries);
      run(testbed, rounds, contenders, queries.size(), out);
      bad = rounds.bad();
    }
    System.out.println("wrote " + out);
    if (!bad.isEmpty()) {
      System.err.println("bench: FAILED or other rows than the yardstick's: " + bad);
    }
    return bad.isEmpty() ? 0 : 1;
  }

  private Map<String, String> conf() {
    final Map<String, String> conf = new HashMap<>();
    if (pool != null) {
      conf.put("spark.zerohop.pool.size", pool);
    }
    conf.putAll(options.conf());
    return conf;
  }

  private String bench() {
    return killEvery == null ? BENCH : KILLS_BENCH;
  }

  private void run(
      final Testbed testbed,
      final TpcdsRounds rounds,
      final List<Contender> contenders,
      final int queries,
      final Path out)
      throws IOException {
    final int timed = pool == null ? iterations : 0;
    final Measurement measurement = options.measurement(bench(), setting(timed));
    rounds.start();
    rounds.compare();
    write(rounds, contenders, queries, measurement, out);
    for (int round = 1; round <= timed; round++) {
      rounds.time(round);
      write(rounds, contenders, queries, measurement, out);
    }
    if (killEvery != null) {
      try (Kills kills = new Kills(testbed, Duration.ofSeconds(killEvery))) {
        rounds.kill(kills);
      }
      write(rounds, contenders, queries, measurement, out);
    }
  }

  private Map<String, Object> setting(final int timed) {
    final Map<String, Object> setting = new HashMap<>();
    setting.put("scale", scale);
    setting.put("iterations", timed);
    if (pool != null) {
      setting.put("pool_size", pool);
    }
    if (killEvery != null) {
      setting.put("kill_every", killEvery);
      // By which kills.py knows whether it has this run.
      setting.put("session", UUID.randomUUID().toString().substring(0, 8));
    }
    return setting;
  }

  /** After every round, so that a run that breaks off keeps what it has. */
  private void write(
      final TpcdsRounds rounds,
      final List<Contender> contenders,
      final int queries,
      final Measurement measurement,
      final Path out)
      throws IOException {
    final List<Map<String, Object>> summaries = new ArrayList<>();
    for (int lane = 0; lane < contenders.size() - 1; lane++) {
      final Map<String, Object> summary = new LinkedHashMap<>();
      summary.put("case", contenders.get(lane).label());
      summary.put("over", contenders.get(contenders.size() - 1).label());
      summary.putAll(rounds.ratios(lane).summary());
      summary.put("asked", queries);
      summary.put("equal", rounds.equal(lane));
      summary.put("failed", rounds.failed(lane));
      summary.put("restarts", rounds.restarts());
      summaries.add(summary);
    }
    measurement.setRows(rounds.rows());
    measurement.setFinding("summary", summaries);
    if (contenders.indexOf(Contender.ZEROHOP) == 0) {
      measurement.setFinding("goals", goals(rounds));
    }
    measurement.write(out);
  }

  private List<Map<String, Object>> goals(final TpcdsRounds rounds) {
    final String what = "TPC-DS scale " + (scale == Math.rint(scale) ? (long) scale + "" : scale);
    final List<Map<String, Object>> goals = new ArrayList<>();
    if (pool == null) {
      goals.add(
          goal(
              what
                  + " on host memory, Spark's defaults, geometric mean of Zerohop's time over sort"
                  + " shuffle's",
              "at_most",
              MEAN_GOAL,
              rounds.ratios(0).mean()));
      goals.add(
          goal(
              "the same over queries of which sort shuffle writes more than 1 MB",
              "at_most",
              SHUFFLING_GOAL,
              rounds.ratios(0).ofBytes(SHUFFLING_BYTES).mean()));
      goals.add(
          goal(
              "slowest query over sort shuffle's beyond its spread",
              "at_most",
              WORST_GOAL,
              rounds.ratios(0).worstBeyondSpread()));
    }
    goals.add(
        goal(
            "queries equal to sort shuffle's of " + Workload.TPCDS.size(),
            "at_least",
            Workload.TPCDS.size(),
            rounds.equal(0)));
    return goals;
  }

  private static Map<String, Object> goal(
      final String goal, final String bound, final Number figure, final Number value) {
    final Map<String, Object> map = new LinkedHashMap<>();
    map.put("goal", goal);
    map.put(bound, figure);
    map.put("value", value);
    return map;
  }
}
