package io.zerohop.spark.doctor;

import picocli.CommandLine;
import picocli.CommandLine.Command;

/** The commands of the jar. */
@Command(
    name = "java -jar zerohop-spark.jar",
    subcommands = DoctorCommand.class,
    mixinStandardHelpOptions = true,
    versionProvider = Commands.Version.class,
    description = "Zerohop, a shuffle manager for Apache Spark.")
final class Commands implements Runnable {
  @CommandLine.Spec private CommandLine.Model.CommandSpec spec;

  /** The release of the jar. */
  static final class Version implements CommandLine.IVersionProvider {
    @Override
    public String[] getVersion() {
      return new String[] {"Zerohop " + Report.version()};
    }
  }

  /**
   * Runs a command. Called by {@link Launcher}, by its name.
   *
   * @return the exit status
   */
  public static int run(final String[] arguments) {
    return new CommandLine(new Commands()).execute(arguments);
  }

  /** Without a command: says which there are. */
  @Override
  public void run() {
    spec.commandLine().usage(spec.commandLine().getOut());
  }
}
