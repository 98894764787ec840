package io.zerohop.spark.task;

import io.zerohop.spark.metrics.ReadMetrics;
import org.apache.spark.TaskContext;
import org.apache.spark.shuffle.ShuffleReadMetricsReporter;
import org.apache.spark.storage.BlockId;
import org.apache.spark.storage.BlockManagerId;
import org.apache.spark.util.TaskCompletionListener;
import org.jspecify.annotations.Nullable;
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
    ReadMetrics pathMetrics) {

  /**
   * Ends one reader with its task, unless it has ended before. A task may have thousands of
   * readers, and Spark keeps each listener until the task ends: so one that is done keeps nothing
   * of its reader. Thread safe.
   */
  public static final class ReadEnd implements TaskCompletionListener {
    /** Absent before there is a reader, and after its end. */
    private @Nullable Runnable step;

    /**
     * Runs a step when the task ends; at once if it has ended.
     *
     * @param atEnd ends the reader
     */
    public void register(final TaskContext task, final Runnable atEnd) {
      synchronized (this) {
        step = atEnd;
      }
      task.addTaskCompletionListener(this);
    }

    /** Forgets the reader, which has ended. Idempotent. */
    public void done() {
      take();
    }

    private synchronized @Nullable Runnable take() {
      final Runnable left = step;
      step = null;
      return left;
    }

    @Override
    public void onTaskCompletion(final TaskContext task) {
      final Runnable left = take();
      if (left != null) {
        left.run();
      }
    }
  }
}
