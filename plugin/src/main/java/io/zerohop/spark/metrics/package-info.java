/** Zerohop in Spark's metrics system and in Spark's metrics of tasks. */
package io.zerohop.spark.metrics;
