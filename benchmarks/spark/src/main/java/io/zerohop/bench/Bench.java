package io.zerohop.bench;

import io.zerohop.cluster.ClusterException;
import picocli.CommandLine;
import picocli.CommandLine.Command;

/** The benchmarks: whole Spark jobs on real clusters, contenders in turns, and what spills. */
@Command(
    name = "run.sh",
    subcommands = {
      HostJob.class,
      Tpcds.class,
      Between.class,
      Growth.class,
      Spill.class,
      UcxGet.class
    },
    description = "Measures and writes JSON; plot.py draws it.")
public final class Bench {
  private Bench() {}

  /** Ends with status 0 only if every run succeeded and every result was equal. */
  public static void main(final String[] args) {
    final CommandLine line = new CommandLine(new Bench());
    line.setExecutionExceptionHandler(
        (failure, command, parsed) -> {
          if (!(failure instanceof ClusterException)) {
            failure.printStackTrace();
          }
          System.err.println("bench: FAILED " + failure.getMessage());
          return 1;
        });
    System.exit(line.execute(args));
  }
}
