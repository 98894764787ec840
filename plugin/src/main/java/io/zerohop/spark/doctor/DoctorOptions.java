package io.zerohop.spark.doctor;

import java.io.PrintWriter;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.Spec;

/** Options of the doctor's report. */
final class DoctorOptions {
  @Option(names = "--json", description = "Print JSON in place of text.")
  private boolean json;

  @Option(names = "--no-measure", description = "Check only; measure no rates.")
  private boolean unmeasured;

  /** The command that has these options. */
  @Spec(Spec.Target.MIXEE)
  private CommandSpec command;

  boolean measures() {
    return !unmeasured;
  }

  /** Prints a report. */
  int print(final Report report) {
    final PrintWriter out = command.commandLine().getOut();
    out.println(json ? report.json() : report.text().stripTrailing());
    out.flush();
    return report.exitStatus();
  }
}
