package io.zerohop.spark.ui;

import io.zerohop.spark.report.Advice;
import io.zerohop.spark.report.ShuffleReport;
import java.util.List;
import org.apache.spark.scheduler.SparkListenerEvent;

/**
 * One executor's report as an event for listeners and the event log. Spark writes and reads it by
 * this class's name; a reader without this class skips it.
 */
public record ShuffleReportEvent(ShuffleReport report) implements SparkListenerEvent {

  /** Of a process that has counted nothing. */
  static ShuffleReportEvent of(final String executorId, final List<Advice> advice) {
    final long now = System.currentTimeMillis();
    return new ShuffleReportEvent(
        new ShuffleReport(executorId, "", now, List.of(), List.of(), null, List.of(), advice));
  }
}
