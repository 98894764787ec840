package io.zerohop.spark;

import io.zerohop.spark.doctor.DoctorCommand;
import io.zerohop.spark.doctor.Report.ReleaseVersion;
import io.zerohop.spark.keeperdaemon.KeeperCommand;
import io.zerohop.spark.rdmaproof.ProofCommand;
import picocli.CommandLine;
import picocli.CommandLine.Command;

/** The commands of the jar. */
@Command(
    name = "java -jar zerohop-spark.jar",
    subcommands = {DoctorCommand.class, KeeperCommand.class, ProofCommand.class},
    mixinStandardHelpOptions = true,
    versionProvider = ReleaseVersion.class,
    description = "Zerohop, a shuffle manager for Apache Spark.")
final class Commands implements Runnable {
  @CommandLine.Spec private CommandLine.Model.CommandSpec spec;

  /**
   * Runs a command. Called by {@code doctor.Launcher}, by its name.
   *
   * @return the exit status
   */
  public static int run(final String[] arguments) {
    return new CommandLine(new Commands())
        .setCaseInsensitiveEnumValuesAllowed(true)
        .execute(arguments);
  }

  /** Without a command: says which there are. */
  @Override
  public void run() {
    spec.commandLine().usage(spec.commandLine().getOut());
  }
}
