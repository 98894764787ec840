package io.zerohop.spark.doctor;

import picocli.CommandLine.Option;

/** What the doctor's report is to have, wherever it runs. */
final class DoctorOptions {
  @Option(names = "--json", description = "Print JSON in place of text.")
  private boolean json;

  @Option(names = "--no-measure", description = "Check only; measure no rates.")
  private boolean unmeasured;

  boolean measures() {
    return !unmeasured;
  }

  /** Prints a report. */
  int print(final Report report) {
    System.out.println(json ? report.json() : report.text().stripTrailing());
    System.out.flush();
    return report.exitStatus();
  }
}
