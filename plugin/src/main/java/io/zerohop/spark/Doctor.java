package io.zerohop.spark;

import io.zerohop.spark.doctor.Report;
import io.zerohop.spark.doctor.SparkApplication;
import io.zerohop.spark.doctor.SparkApplication.SparkCommand;
import org.apache.spark.SparkContext;

/**
 * Reports why an application's shuffles are slower than they could be. It runs by {@code
 * spark-submit --class io.zerohop.spark.Doctor ... zerohop-spark.jar [--json] [--no-measure]} with
 * the application's settings, or by {@link #examine} within it. Each executor is examined by a
 * task, one after the other. docs/doctor.md has all checks.
 */
public final class Doctor {
  private Doctor() {}

  /** Prints the report and ends the process: 0 ok, 1 after a warning, 2 after a failure. */
  public static void main(final String[] arguments) {
    System.exit(SparkCommand.run(arguments));
  }

  /**
   * Examines a running application, which goes on afterwards. Its executors should have nothing
   * else to do if rates are to be believed.
   *
   * @param measures whether to measure rates, too
   * @return the report as text
   */
  public static String examine(final SparkContext context, final boolean measures)
      throws InterruptedException {
    final Report report = new SparkApplication(context, measures).examine();
    return report.text();
  }
}
