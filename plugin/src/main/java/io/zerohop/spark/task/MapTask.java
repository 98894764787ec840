package io.zerohop.spark.task;

import org.apache.spark.TaskContext;
import org.apache.spark.shuffle.ShuffleWriteMetricsReporter;
import org.apache.spark.storage.BlockManagerId;

/**
 * The map task that writes a map output.
 *
 * @param mapId names the output: the attempt of the task
 * @param metrics Spark's, of what is written
 * @param location what goes into the map status
 */
public record MapTask(
    long mapId,
    TaskContext context,
    ShuffleWriteMetricsReporter metrics,
    BlockManagerId location) {}
