package io.zerohop.spark.doctor;

import io.zerohop.spark.doctor.Finding.Verdict;
import io.zerohop.spark.executor.OtherNodes;
import io.zerohop.spark.report.Advice;
import java.util.List;
import org.apache.spark.SparkConf;

/**
 * The doctor's findings about a running application, for its tab: only checks that can run beside
 * its tasks. Nothing is measured, and neither a GPU nor UCX is opened a second time.
 */
public final class RunningDoctor {
  private RunningDoctor() {}

  /** Returns all findings about the driver's settings and jars. Takes half a minute at most. */
  public static List<Advice> ofDriver(final SparkConf conf) {
    final Examination examination = new Examination();
    SparkChecks.ofRunningDriver(examination, conf);
    return examination.notes().findings().stream().map(Finding::advice).toList();
  }

  /** Returns problems with this executor's limits. Takes 20 seconds at most. */
  public static List<Advice> ofExecutor(final SparkConf conf) {
    final Examination examination = new Examination();
    examination.run(Item.MEMORY, Machine.SHORT, new LimitCheck(OtherNodes.obstacle(conf) == null));
    return examination.notes().findings().stream()
        .filter(finding -> finding.verdict().compareTo(Verdict.WARN) >= 0)
        .map(Finding::advice)
        .toList();
  }
}
