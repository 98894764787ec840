package io.zerohop.spark.metrics;

import io.zerohop.device.Message;
import io.zerohop.shuffle.block.Block;
import io.zerohop.shuffle.block.BlockPath;
import io.zerohop.shuffle.block.BlockSource;
import io.zerohop.shuffle.block.Link;
import io.zerohop.shuffle.fetch.Fetches;
import io.zerohop.spark.watch.ExecutorWatch;
import java.io.Serializable;
import java.util.EnumMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import org.agrona.collections.LongHashSet;
import org.apache.spark.SparkContext;
import org.apache.spark.TaskContext;
import org.apache.spark.shuffle.ShuffleReadMetricsReporter;
import org.apache.spark.util.LongAccumulator;
import org.apache.spark.util.Utils;
import org.jspecify.annotations.Nullable;

/**
 * Counts one reader's bytes: in Spark's own metrics (reads in place as local, others as remote), in
 * the named accumulators, and for who watches the executor. Called by the task's own thread.
 */
public final class ReadMetrics implements Fetches.Listener {
  private static final long NANOS_PER_MILLI = 1_000_000;

  private final TaskContext task;
  private final ShuffleReadMetricsReporter reporter;
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
      final ShuffleReadMetricsReporter reporter,
      final PathAccumulators accumulators,
      final ExecutorWatch.Reader watch,
      final boolean batches) {
    this.task = task;
    this.reporter = reporter;
    this.accumulators = accumulators;
    this.watch = watch;
    this.counted = new BlockCount(batches);
  }

  /** The reader has ended, or its task has. Idempotent. */
  public void end() {
    watch.end();
  }

  @Override
  public void fetched(
      final BlockSource source, final Link link, final List<Block> blocks, final long bytes) {
    final long sparks = counted.add(blocks);
    if (link.path().isInPlace()) {
      reporter.incLocalBlocksFetched(sparks);
      reporter.incLocalBytesRead(bytes);
    } else {
      reporter.incRemoteBlocksFetched(sparks);
      reporter.incRemoteBytesRead(bytes);
    }
    accumulators.add(task, link.path(), bytes);
    watch.fetched(source, link, blocks, bytes);
  }

  @Override
  public void fellBack(final BlockSource source, final List<Block> blocks, final Message reason) {
    watch.fellBack(source, blocks, reason);
  }

  /** Spark counts milliseconds, so the rest is kept for the next time. */
  @Override
  public void waited(final long nanos) {
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

  /**
   * Named accumulators that show on the Stages page which paths a shuffle's bytes took. Made on the
   * driver for every shuffle, since the page shows an accumulator's total and not a stage's share
   * of it; they travel in the shuffle's handle, so that tasks have them without any further
   * message. Updates of failed tasks do not count, as with Spark's own metrics.
   *
   * <p>Spark attaches to a task every accumulator that comes with its closure and sends its value
   * back, used or not; the driver keeps those that changed for each of the last 100,000 tasks
   * ({@code spark.ui.retainedTasks}). So they travel as bytes, and a task makes only those that it
   * has something to add to: one or two for a shuffle that it reads, and none for one that it
   * writes. Thread safe.
   */
  public static final class PathAccumulators implements Serializable {
    private static final long serialVersionUID = 2L;

    private final Map<BlockPath, byte[]> packed = new EnumMap<>(BlockPath.class);

    /** The driver's own; Spark itself refers to them weakly only. */
    private final transient Map<BlockPath, LongAccumulator> originals =
        new EnumMap<>(BlockPath.class);

    /** Those that this task has made so far, if any. */
    private transient @Nullable Map<BlockPath, LongAccumulator> made;

    private PathAccumulators() {}

    public static PathAccumulators register(final SparkContext context) {
      final PathAccumulators accumulators = new PathAccumulators();
      for (final BlockPath path : BlockPath.values()) {
        final LongAccumulator bytes = context.longAccumulator(name(path));
        accumulators.originals.put(path, bytes);
        accumulators.packed.put(path, Utils.serialize(bytes));
      }
      return accumulators;
    }

    /** The name that tools see. */
    static String name(final BlockPath path) {
      return "zerohop." + Metric.bytes(path).key();
    }

    /** Adds what one window brought to a task. */
    synchronized void add(final TaskContext task, final BlockPath path, final long byteCount) {
      if (made == null) {
        made = new EnumMap<>(BlockPath.class);
      }
      made.computeIfAbsent(path, one -> unpack(Objects.requireNonNull(packed.get(one)), task))
          .add(byteCount);
    }

    /** An accumulator that is read in a task's thread belongs to the task from then on. */
    private static LongAccumulator unpack(final byte[] bytes, final TaskContext task) {
      final LongAccumulator accumulator = Utils.deserialize(bytes);
      if (TaskContext.get() == null) {
        task.registerAccumulator(accumulator); // A thread that the task has started.
      }
      return accumulator;
    }
  }
}
