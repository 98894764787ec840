package io.zerohop.spark.ui;

import io.zerohop.spark.report.ShuffleReport;
import org.apache.spark.scheduler.SparkListenerEvent;

/**
 * One executor's report, as listeners hear it and as it stands in the event log. Spark writes and
 * reads it by this class's name; a reader without this class skips it.
 *
 * @param report what the executor counted
 */
public record ShuffleReportEvent(ShuffleReport report) implements SparkListenerEvent {}
