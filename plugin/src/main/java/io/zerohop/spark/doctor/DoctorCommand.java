package io.zerohop.spark.doctor;

import io.zerohop.spark.doctor.Finding.Verdict;
import io.zerohop.spark.doctor.Report.ReleaseVersion;
import java.io.IOException;
import java.io.PrintWriter;
import java.net.InetAddress;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Callable;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.ParameterException;
import picocli.CommandLine.Spec;

/** {@code java -jar zerohop-spark.jar doctor}: this machine, and settings that are named. */
@Command(
    name = "doctor",
    mixinStandardHelpOptions = true,
    versionProvider = ReleaseVersion.class,
    description = "Says why shuffles are not as fast as they could be on this machine.",
    exitCodeListHeading = "Exit status:%n",
    exitCodeList = {
      " 0:nothing is to be done",
      " 1:something makes shuffles slower (warn)",
      " 2:something does not work (fail)",
      "64:the command line is not valid",
      "70:the doctor itself failed"
    },
    exitCodeOnInvalidInput = DoctorCommand.INVALID,
    exitCodeOnExecutionException = DoctorCommand.BROKEN)
public final class DoctorCommand implements Callable<Integer> {
  static final int INVALID = 64;
  static final int BROKEN = 70;

  @Mixin private DoctorOptions options;

  @Spec private CommandSpec spec;

  @Option(
      names = "--conf",
      paramLabel = "KEY=VALUE",
      description = "A setting of the application, as spark-submit takes it.")
  private Map<String, String> conf = Map.of();

  @Option(
      names = "--properties-file",
      paramLabel = "FILE",
      description = "Settings of the application, such as spark-defaults.conf.")
  private @Nullable Path propertiesFile;

  @Option(
      names = Launcher.SPARK_HOME_OPTION,
      paramLabel = "DIR",
      description =
          "An installation of Spark, by whose classes settings and sizes are judged. Its jars are"
              + " loaded, by root only if nobody else can change them.")
  private @Nullable Path sparkHome; // Read by Launcher, before this class is loaded.

  @Override
  public Integer call() throws IOException {
    final Settings settings = settings();
    final Examination examination = new Examination();
    Machine.examine(examination, settings, null, options.measures());
    Machine.examinePort(examination, settings);
    if (Launcher.isThere("org.apache.spark.SparkConf")) {
      SparkChecks.ofSettings(examination, settings);
    } else {
      examination.notes().add(withoutSpark(settings));
    }
    final String title = "host " + InetAddress.getLocalHost().getHostName();
    return options.print(new Report(List.of(Report.Section.of(title, examination.notes()))));
  }

  private Settings settings() {
    try {
      return Settings.read(propertiesFile, conf);
    } catch (final IOException | IllegalArgumentException e) {
      throw new ParameterException(
          spec.commandLine(), "cannot read --properties-file " + propertiesFile + ": " + e);
    }
  }

  private Finding withoutSpark(final Settings settings) {
    final String unchecked =
        ": Spark's version, RAPIDS', what settings come to, and sizes were not checked";
    if (sparkHome == null) {
      final String set = System.getenv("SPARK_HOME");
      final boolean isSet = set != null && !set.isEmpty();
      final String what =
          (isSet
                  ? "SPARK_HOME is set, and code that an environment variable names is not loaded"
                  : "Spark is not on the class path")
              + unchecked;
      final String remedy =
          "name an installation by " + Launcher.SPARK_HOME_OPTION + (isSet ? " " + set : "");
      return settings.isEmpty()
          ? Item.SPARK.found(Verdict.SKIP, what, remedy)
          : Item.SPARK.warn(what, remedy);
    }
    final String refusal = new ForeignCode().refusalOfSpark(sparkHome);
    return refusal == null
        ? Item.SPARK.warn(
            sparkHome + " has no folder jars" + unchecked,
            "name an installation by " + Launcher.SPARK_HOME_OPTION)
        : Item.SPARK.fail(
            refusal + unchecked,
            "run the doctor as another user, or give the installation to root alone (chown -R"
                + " root, chmod -R go-w)");
  }

  /** Options of the doctor's report. */
  static final class DoctorOptions {
    @Option(names = "--json", description = "Print JSON in place of text.")
    private boolean json;

    @Option(names = "--no-measure", description = "Check only; measure no rates.")
    private boolean unmeasured;

    @Spec(Spec.Target.MIXEE)
    private CommandSpec command;

    boolean measures() {
      return !unmeasured;
    }

    int print(final Report report) {
      final PrintWriter out = command.commandLine().getOut();
      out.println(json ? report.json() : report.text().stripTrailing());
      out.flush();
      return report.exitStatus();
    }
  }
}
