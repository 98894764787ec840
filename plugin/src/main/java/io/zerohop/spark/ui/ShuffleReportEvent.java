package io.zerohop.spark.ui;

import com.fasterxml.jackson.annotation.JsonCreator;
import com.fasterxml.jackson.annotation.JsonProperty;
import com.fasterxml.jackson.databind.JsonNode;
import io.zerohop.spark.report.Advice;
import io.zerohop.spark.report.ShuffleReport;
import java.util.List;
import org.apache.spark.scheduler.SparkListenerEvent;
import org.jspecify.annotations.Nullable;

/**
 * One executor's report as an event for listeners and the event log. Spark writes and reads it by
 * this class's name; a reader without this class skips it.
 *
 * @param report null if a line of an event log has values of other types than an executor writes.
 *     Such a line is no error: Spark would give up the rest of the log.
 */
public record ShuffleReportEvent(@Nullable ShuffleReport report) implements SparkListenerEvent {

  /** Of a process that has counted nothing. */
  static ShuffleReportEvent of(final String executorId, final List<Advice> advice) {
    final long now = System.currentTimeMillis();
    return new ShuffleReportEvent(
        new ShuffleReport(executorId, "", now, List.of(), List.of(), null, List.of(), advice));
  }

  @JsonCreator
  static ShuffleReportEvent read(@JsonProperty("report") final @Nullable JsonNode report) {
    try {
      return new ShuffleReportEvent(ShuffleReport.read(report));
    } catch (final IllegalArgumentException e) {
      return new ShuffleReportEvent(null);
    }
  }
}
