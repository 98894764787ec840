package io.zerohop.spark.metrics;

import io.zerohop.shuffle.block.Block;
import io.zerohop.shuffle.block.Path;
import io.zerohop.shuffle.fetch.FetchListener;
import java.util.List;
import org.apache.spark.TaskContext;
import org.apache.spark.shuffle.ShuffleReadMetricsReporter;

/**
 * Where one reader's bytes are counted: in Spark's own metrics (what is read in place counts as
 * local, the rest as remote), in the named accumulators and in the executor's metrics source.
 * Called by the task's own thread.
 */
public final class ReadMetrics {
  private static final long NANOS_PER_MILLI = 1_000_000;

  private final TaskContext task;
  private final PathAccumulators accumulators;
  private final ExecutorMetrics executor;
  private final BlockCount counted;
  private long waitedNanos;

  /**
   * Metrics of one reader.
   *
   * @param batches whether Spark counts what is read of one map output as one block
   */
  public ReadMetrics(
      final TaskContext task,
      final PathAccumulators accumulators,
      final ExecutorMetrics executor,
      final boolean batches) {
    this.task = task;
    this.accumulators = accumulators;
    this.executor = executor;
    this.counted = new BlockCount(batches);
  }

  /** Counts what a fetch tells, for this reporter. */
  public FetchListener listener(final ShuffleReadMetricsReporter reporter) {
    return new FetchListener() {
      @Override
      public void fetched(final Path path, final List<Block> blocks, final long bytes) {
        ReadMetrics.this.fetched(reporter, path, blocks, bytes);
      }

      @Override
      public void waited(final long nanos) {
        ReadMetrics.this.waited(reporter, nanos);
      }
    };
  }

  /** Blocks arrived by {@code path}. */
  private void fetched(
      final ShuffleReadMetricsReporter reporter,
      final Path path,
      final List<Block> blocks,
      final long bytes) {
    final long sparks = counted.add(blocks);
    if (path == Path.STAGED || path == Path.UCX) {
      reporter.incRemoteBlocksFetched(sparks);
      reporter.incRemoteBytesRead(bytes);
    } else {
      reporter.incLocalBlocksFetched(sparks);
      reporter.incLocalBytesRead(bytes);
    }
    accumulators.add(task, path, bytes);
    executor.fetched(path, blocks.size(), bytes);
  }

  /** The reader waited; Spark counts milliseconds, so the rest is kept for the next time. */
  private void waited(final ShuffleReadMetricsReporter reporter, final long nanos) {
    waitedNanos += nanos;
    reporter.incFetchWaitTime(waitedNanos / NANOS_PER_MILLI);
    waitedNanos %= NANOS_PER_MILLI;
    executor.waited(nanos);
  }
}
