package io.zerohop.demo;

import io.zerohop.cluster.ClusterException;
import io.zerohop.cluster.Installation;
import io.zerohop.workload.ClusterShape;
import io.zerohop.workload.Contender;
import io.zerohop.workload.Testbed;
import io.zerohop.workload.Workload;
import java.io.IOException;
import java.io.PrintStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.concurrent.Callable;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.stream.Stream;
import picocli.CommandLine;
import picocli.CommandLine.Command;
import picocli.CommandLine.Option;

/** Runs TPC-H queries through two ways to shuffle and compares every row of every result. */
@Command(
    name = "demo",
    sortOptions = false,
    usageHelpAutoWidth = true,
    description =
        "Runs TPC-H queries through Zerohop and through Spark's sort shuffle on real"
            + " clusters and compares every result row.")
public final class Demo implements Callable<Integer> {
  private static final double MIB = 1 << 20;
  private static final double SCALE = 0.2;
  private static final int PARTITIONS = 16;

  /** What --quick runs instead: joins of many tables, an aggregation and a plain exchange. */
  private static final List<String> QUICK_QUERIES = List.of("q3", "q5", "q9", "repartition");

  private static final double QUICK_SCALE = 0.03;
  private static final int QUICK_PARTITIONS = 8;

  @Option(names = "--quick", description = "four queries on little data, in two minutes")
  private boolean quick;

  @Option(
      names = "--scale",
      paramLabel = "FACTOR",
      description = "TPC-H scale factor: 1 is 1 GB (default: 0.2; with --quick 0.03)")
  private Double scale;

  @Option(
      names = "--queries",
      split = ",",
      paramLabel = "QUERY",
      description = "only these, for example q3,q5,repartition (default: all)")
  private List<String> queries;

  @Option(
      names = "--executors",
      paramLabel = "N",
      defaultValue = "2",
      description = "executor JVMs of each cluster (default: ${DEFAULT-VALUE})")
  private int executors;

  @Option(
      names = "--executor-memory",
      paramLabel = "MIB",
      defaultValue = "1024",
      description = "heap of an executor (default: ${DEFAULT-VALUE})")
  private int executorMemoryMib;

  @Option(
      names = "--partitions",
      paramLabel = "N",
      description = "spark.sql.shuffle.partitions (default: 16; with --quick 8)")
  private Integer partitions;

  @Option(
      names = "--conf",
      paramLabel = "KEY=VALUE",
      description = "a Spark setting for both runs; may be repeated")
  private Map<String, String> conf = Map.of();

  @Option(
      names = "--managers",
      split = ",",
      paramLabel = "SHUFFLE",
      hidden = true,
      description = "what to compare: the yardstick, then the one in question")
  private List<String> managers = List.of("sort", "zerohop");

  @Option(
      names = "--keep",
      description =
          "keep data, logs and results, and the applications with their UI until Enter is pressed")
  private boolean keep;

  @Option(
      names = "--keep-seconds",
      paramLabel = "SECONDS",
      defaultValue = "1800",
      description = "with --keep, how long to wait for Enter (default: ${DEFAULT-VALUE})")
  private long keepSeconds;

  @Option(names = "--project", hidden = true, required = true)
  private Path project;

  @Option(names = "--run-dir", hidden = true, required = true)
  private Path run;

  @Option(
      names = {"-h", "--help"},
      usageHelp = true,
      description = "show this and end")
  @SuppressWarnings("UnusedVariable") // picocli sets it, and ends then.
  private boolean help;

  private final PrintStream out = System.out;

  private Demo() {}

  /** Ends with status 0 only if every query ran and every row was equal. */
  public static void main(final String[] args) {
    System.exit(new CommandLine(new Demo()).execute(args));
  }

  @Override
  public Integer call() throws IOException, InterruptedException {
    setDefaults();
    queries.forEach(Workload::named);
    final List<Contender> contenders = managers.stream().map(Contender::labelled).toList();
    final ClusterShape shape =
        new ClusterShape(
            executors,
            1,
            executorMemoryMib,
            run.resolve("local"),
            ClusterShape.allShuffled(partitions, settings()));
    Files.createDirectories(shape.localDir());
    final Comparison comparison = new Comparison(contenders, queries, out);
    try (Testbed testbed = new Testbed(Installation.in(project), shape, run)) {
      prepare(testbed, contenders);
      final String page = testbed.page(contenders.size() - 1);
      if (page != null) {
        out.println("the tab, while this runs: " + page + "/zerohop/");
      }
      comparison.run(testbed);
      if (keep && page != null) {
        hold(page);
      }
    } catch (final ClusterException e) {
      out.println(e.getMessage());
      comparison.abort();
    }
    return comparison.finish(keep ? run : null);
  }

  private void setDefaults() {
    if (queries == null) {
      queries = quick ? QUICK_QUERIES : Workload.ALL;
    }
    if (scale == null) {
      scale = quick ? QUICK_SCALE : SCALE;
    }
    if (partitions == null) {
      partitions = quick ? QUICK_PARTITIONS : PARTITIONS;
    }
  }

  /** Both contenders have Spark's UI, so that neither pays for it alone. */
  private Map<String, String> settings() {
    final Map<String, String> settings = new HashMap<>();
    settings.put("spark.ui.enabled", "true");
    settings.put("spark.ui.port", "0");
    settings.putAll(conf);
    return settings;
  }

  /** Returns when a line comes, when the input ends, or after the limit. */
  private void hold(final String page) throws InterruptedException {
    out.printf(
        Locale.ROOT,
        "%nthe applications stay for %d s: %s/zerohop/ ; Enter ends them%n",
        keepSeconds,
        page);
    final CountDownLatch end = new CountDownLatch(1);
    final Thread reader =
        new Thread(
            () -> {
              try {
                int read = System.in.read();
                while (read >= 0 && read != '\n') {
                  read = System.in.read();
                }
              } catch (final IOException e) {
                out.println("input cannot be read, which ends the wait: " + e.getMessage());
              }
              end.countDown();
            },
            "enter");
    reader.setDaemon(true);
    reader.start();
    if (!end.await(keepSeconds, TimeUnit.SECONDS)) {
      out.println("no Enter within " + keepSeconds + " s (--keep-seconds)");
    }
  }

  private void prepare(final Testbed testbed, final List<Contender> contenders)
      throws IOException, InterruptedException {
    final long start = System.nanoTime();
    out.printf(Locale.ROOT, "generating TPC-H data, scale factor %s ...%n", scale);
    testbed.generate(scale);
    out.printf(
        Locale.ROOT, "  %.0f MiB of Parquet in %s%n", size(testbed.data()) / MIB, since(start));
    final long startClusters = System.nanoTime();
    out.printf(Locale.ROOT, "starting two clusters of %d executor JVMs each ...%n", executors);
    for (int lane = 0; lane < contenders.size(); lane++) {
      testbed.start(lane, contenders.get(lane));
    }
    testbed.awaitReady();
    out.printf(Locale.ROOT, "  ready in %s%n%n", since(startClusters));
  }

  private static String since(final long start) {
    return String.format(Locale.ROOT, "%.0f s", (System.nanoTime() - start) / 1e9);
  }

  private static long size(final Path folder) throws IOException {
    try (Stream<Path> files = Files.walk(folder)) {
      return files.filter(Files::isRegularFile).mapToLong(file -> file.toFile().length()).sum();
    }
  }
}
