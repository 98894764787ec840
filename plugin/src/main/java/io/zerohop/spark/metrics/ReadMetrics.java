package io.zerohop.spark.metrics;

import io.zerohop.device.Message;
import io.zerohop.shuffle.block.Block;
import io.zerohop.shuffle.block.BlockSource;
import io.zerohop.shuffle.block.Link;
import io.zerohop.shuffle.block.Path;
import io.zerohop.shuffle.fetch.FetchListener;
import io.zerohop.spark.watch.ExecutorWatch;
import java.util.List;
import org.agrona.collections.LongHashSet;
import org.apache.spark.TaskContext;
import org.apache.spark.shuffle.ShuffleReadMetricsReporter;

/**
 * Counts one reader's bytes: in Spark's own metrics (reads in place as local, others as remote), in
 * the named accumulators, and for who watches the executor. Called by the task's own thread.
 */
public final class ReadMetrics {
  private static final long NANOS_PER_MILLI = 1_000_000;

  private final TaskContext task;
  private final PathAccumulators accumulators;
  private final ExecutorWatch.Reader watch;
  private final BlockCount counted;
  private long waitedNanos;

  /**
   * Metrics of one reader.
   *
   * @param watch hears all of it, and of the reader's end
   * @param batches whether Spark counts what is read of one map output as one block
   */
  public ReadMetrics(
      final TaskContext task,
      final PathAccumulators accumulators,
      final ExecutorWatch.Reader watch,
      final boolean batches) {
    this.task = task;
    this.accumulators = accumulators;
    this.watch = watch;
    this.counted = new BlockCount(batches);
  }

  /** The reader has ended, or its task has. Idempotent. */
  public void end() {
    watch.end();
  }

  /** Counts what a fetch tells, for this reporter. */
  public FetchListener listener(final ShuffleReadMetricsReporter reporter) {
    return new FetchListener() {
      @Override
      public void fetched(
          final BlockSource source, final Link link, final List<Block> blocks, final long bytes) {
        ReadMetrics.this.fetched(reporter, link.path(), blocks, bytes);
        watch.fetched(source, link, blocks, bytes);
      }

      @Override
      public void fellBack(
          final BlockSource source, final List<Block> blocks, final Message reason) {
        watch.fellBack(source, blocks, reason);
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
    if (path.isInPlace()) {
      reporter.incLocalBlocksFetched(sparks);
      reporter.incLocalBytesRead(bytes);
    } else {
      reporter.incRemoteBlocksFetched(sparks);
      reporter.incRemoteBytesRead(bytes);
    }
    accumulators.add(task, path, bytes);
  }

  /** The reader waited; Spark counts milliseconds, so the rest is kept for the next time. */
  private void waited(final ShuffleReadMetricsReporter reporter, final long nanos) {
    waitedNanos += nanos;
    reporter.incFetchWaitTime(waitedNanos / NANOS_PER_MILLI);
    waitedNanos %= NANOS_PER_MILLI;
    watch.waited(nanos);
  }

  /**
   * Counts the blocks of one reader as Spark's metrics do. Where Spark fetches in batches, all that
   * a reader gets of one map output is one block of a range of partitions; the tests of adaptive
   * execution and the users' dashboards go by that number. Used by the task's own thread.
   */
  static final class BlockCount {
    private final boolean batches;
    private final LongHashSet mapOutputs = new LongHashSet();
    private long last;

    /**
     * A count that begins at 0.
     *
     * @param batches whether Spark would fetch in batches
     */
    BlockCount(final boolean batches) {
      this.batches = batches;
    }

    /** How many these blocks add to what was counted before. */
    long add(final List<Block> blocks) {
      if (!batches) {
        return blocks.size();
      }
      long added = 0;
      for (final Block block : blocks) {
        // Neighbours mostly are of one map output, so the set is seldom asked.
        if (mapOutputs.isEmpty() || block.mapId() != last) {
          last = block.mapId();
          added += mapOutputs.add(last) ? 1 : 0;
        }
      }
      return added;
    }
  }
}
