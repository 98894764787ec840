package io.zerohop.spark;

import io.zerohop.shuffle.Path;
import org.apache.spark.shuffle.ShuffleReadMetricsReporter;

/**
 * Where one reader's bytes are counted: in Spark's own metrics (what is read in place counts as
 * local, the rest as remote), in the named accumulators and in the executor's metrics source.
 * Called by the task's own thread.
 */
public final class ReadMetrics {
  private static final long NANOS_PER_MILLI = 1_000_000;

  private final PathAccumulators accumulators;
  private final ExecutorMetrics executor;
  private long waitedNanos;

  ReadMetrics(final PathAccumulators accumulators, final ExecutorMetrics executor) {
    this.accumulators = accumulators;
    this.executor = executor;
  }

  /** Blocks arrived by {@code path}. */
  public void fetched(
      final ShuffleReadMetricsReporter reporter,
      final Path path,
      final long blocks,
      final long bytes) {
    if (path == Path.STAGED) {
      reporter.incRemoteBlocksFetched(blocks);
      reporter.incRemoteBytesRead(bytes);
    } else {
      reporter.incLocalBlocksFetched(blocks);
      reporter.incLocalBytesRead(bytes);
    }
    accumulators.add(path, blocks, bytes);
    executor.fetched(path, blocks, bytes);
  }

  /** The reader waited; Spark counts milliseconds, so the rest is kept for the next time. */
  public void waited(final ShuffleReadMetricsReporter reporter, final long nanos) {
    waitedNanos += nanos;
    reporter.incFetchWaitTime(waitedNanos / NANOS_PER_MILLI);
    waitedNanos %= NANOS_PER_MILLI;
    executor.waited(nanos);
  }
}
