package io.zerohop.spark.doctor;

import io.zerohop.device.Message;
import io.zerohop.spark.doctor.DoctorCommand.DoctorOptions;
import java.util.List;
import java.util.concurrent.Callable;
import org.apache.spark.SparkConf;
import org.apache.spark.SparkContext;
import picocli.CommandLine;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;

/** The application of {@code spark-submit --class io.zerohop.spark.Doctor}. */
@Command(
    name = "spark-submit --class io.zerohop.spark.Doctor zerohop-spark.jar",
    mixinStandardHelpOptions = true,
    description = "Says why shuffles are not as fast as they could be on this cluster.",
    exitCodeOnInvalidInput = DoctorCommand.INVALID,
    exitCodeOnExecutionException = DoctorCommand.BROKEN)
public final class SparkCommand implements Callable<Integer> {
  @Mixin private DoctorOptions options;

  private SparkCommand() {}

  /** Runs it, with the settings that spark-submit has left. */
  public static int run(final String[] arguments) {
    return new CommandLine(new SparkCommand()).execute(arguments);
  }

  @Override
  public Integer call() throws InterruptedException {
    final SparkConf conf = new SparkConf();
    conf.setIfMissing("spark.app.name", "Zerohop's doctor");
    final SparkContext context;
    try {
      context = new SparkContext(conf);
    } catch (final Exception e) {
      // Zerohop stops applications that cannot work. Scala throws what it does not declare.
      return options.print(refused(conf, e));
    }
    try {
      return options.print(new SparkApplication(context, options.measures()).examine());
    } finally {
      context.stop();
    }
  }

  private static Report refused(final SparkConf conf, final Exception why) {
    Throwable cause = why;
    while (cause.getCause() != null && cause.getCause() != cause) {
      cause = cause.getCause();
    }
    final Examination driver = new Examination();
    SparkChecks.ofDriver(driver, conf);
    final List<Finding> findings = driver.notes().findings();
    findings.add(
        0,
        Finding.fail(
            Item.MANAGER,
            Message.of("the application does not start")
                .because(cause)
                .orRemedy("see the driver's log")));
    return new Report(List.of(new Report.Section("driver", findings, List.of())));
  }
}
