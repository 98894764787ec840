package io.zerohop.spark.task;

import io.zerohop.spark.metrics.ReadMetrics;
import org.apache.spark.TaskContext;
import org.apache.spark.shuffle.ShuffleReadMetricsReporter;
import org.apache.spark.storage.BlockId;
import org.apache.spark.storage.BlockManagerId;
import scala.Tuple2;
import scala.Tuple3;
import scala.collection.Iterator;
import scala.collection.Seq;

/**
 * The task that reads blocks.
 *
 * @param blocks owners and their blocks, as Spark's tracker gives them; to be read once
 * @param metrics Spark's, of what is read
 * @param pathMetrics told of every window
 */
public record ReduceTask(
    Iterator<Tuple2<BlockManagerId, Seq<Tuple3<BlockId, Object, Object>>>> blocks,
    TaskContext context,
    ShuffleReadMetricsReporter metrics,
    ReadMetrics pathMetrics) {}
