/** What executors count for the tab in Spark's UI, and tell the driver. */
package io.zerohop.spark.report;
