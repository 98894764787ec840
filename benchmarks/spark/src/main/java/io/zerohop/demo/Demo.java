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
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.concurrent.Callable;
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

  @Option(
      names = "--scale",
      paramLabel = "FACTOR",
      defaultValue = "0.2",
      description = "TPC-H scale factor: 1 is 1 GB (default: ${DEFAULT-VALUE})")
  private double scale;

  @Option(
      names = "--queries",
      split = ",",
      paramLabel = "QUERY",
      description = "only these, for example q3,q5,repartition (default: all)")
  private List<String> queries = Workload.ALL;

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
      defaultValue = "16",
      description = "spark.sql.shuffle.partitions (default: ${DEFAULT-VALUE})")
  private int partitions;

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

  @Option(names = "--keep", description = "keep data, logs and results")
  private boolean keep;

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
    queries.forEach(Workload::named);
    final List<Contender> contenders = managers.stream().map(Contender::labelled).toList();
    final ClusterShape shape =
        new ClusterShape(
            executors,
            1,
            executorMemoryMib,
            run.resolve("local"),
            ClusterShape.allShuffled(partitions, conf));
    Files.createDirectories(shape.localDir());
    final Comparison comparison = new Comparison(contenders, queries, out);
    try (Testbed testbed = new Testbed(Installation.in(project), shape, run)) {
      prepare(testbed, contenders);
      comparison.run(testbed);
    } catch (final ClusterException e) {
      out.println(e.getMessage());
      comparison.abort();
    }
    return comparison.finish(keep ? run : null);
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
