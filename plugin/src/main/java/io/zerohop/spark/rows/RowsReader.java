package io.zerohop.spark.rows;

import io.zerohop.shuffle.ShuffleNode;
import io.zerohop.shuffle.block.BlockSource;
import io.zerohop.shuffle.fetch.BlockFetcher;
import io.zerohop.shuffle.transport.FallbackTransport;
import io.zerohop.spark.compat.SparkLinks;
import io.zerohop.spark.metrics.ReadMetrics;
import io.zerohop.spark.task.TrackedBlocks;
import java.util.List;
import org.apache.spark.Aggregator;
import org.apache.spark.InterruptibleIterator;
import org.apache.spark.ShuffleDependency;
import org.apache.spark.TaskContext;
import org.apache.spark.shuffle.ShuffleReadMetricsReporter;
import org.apache.spark.shuffle.ShuffleReader;
import org.apache.spark.storage.BlockId;
import org.apache.spark.storage.BlockManagerId;
import org.apache.spark.util.TaskCompletionListener;
import scala.Function2;
import scala.Option;
import scala.Product2;
import scala.Tuple2;
import scala.Tuple3;
import scala.collection.Iterator;
import scala.collection.Seq;
import scala.runtime.AbstractFunction1;

/**
 * Reads the blocks of one reduce task (any range of maps and partitions), then combines and sorts
 * them as the dependency asks, with Spark's own aggregator and sorter.
 *
 * @param <K> key type
 * @param <C> type of what is read: values, or combiners
 */
public final class RowsReader<K, C> implements ShuffleReader<K, C> {
  private final ShuffleDependency<K, Object, C> dependency;
  private final Iterator<Tuple2<BlockManagerId, Seq<Tuple3<BlockId, Object, Object>>>> blocks;
  private final TaskContext context;
  private final ShuffleReadMetricsReporter metrics;
  private final ReadMetrics pathMetrics;
  private final ShuffleNode node;
  private final FallbackTransport staged;

  /**
   * A reader.
   *
   * @param blocks owners and their blocks, as Spark's tracker gives them
   * @param pathMetrics told of every window
   */
  public RowsReader(
      final ShuffleDependency<K, Object, C> dependency,
      final Iterator<Tuple2<BlockManagerId, Seq<Tuple3<BlockId, Object, Object>>>> blocks,
      final TaskContext context,
      final ShuffleReadMetricsReporter metrics,
      final ReadMetrics pathMetrics,
      final ShuffleNode node,
      final FallbackTransport staged) {
    this.dependency = dependency;
    this.blocks = blocks;
    this.context = context;
    this.metrics = metrics;
    this.pathMetrics = pathMetrics;
    this.node = node;
    this.staged = staged;
  }

  @Override
  @SuppressWarnings("unchecked")
  public Iterator<Product2<K, C>> read() {
    final Iterator<Product2<K, C>> records = (Iterator<Product2<K, C>>) (Iterator<?>) records();
    if (dependency.keyOrdering().isDefined()) {
      return interruptible(sorted(records));
    }
    if (dependency.aggregator().isDefined()) {
      return interruptible(combined(records));
    }
    return records;
  }

  private Iterator<? extends Product2<?, ?>> records() {
    final List<BlockSource> sources = TrackedBlocks.sources(blocks, context.taskAttemptId());
    final BlockFetcher fetcher =
        node.fetch(sources, staged, pathMetrics.listener(metrics), context::isInterrupted);
    final UnsafeRows rows = UnsafeRows.of(dependency.serializer());
    final BlockRecords any = new StreamRecords(dependency.serializer());
    final BlockRecordIterator iterator =
        new BlockRecordIterator(
            fetcher,
            sources,
            rows == null ? any : new UnsafeRowRecords(rows, any, fetcher::hasMore),
            context,
            metrics,
            () -> {
              context.taskMetrics().mergeShuffleReadMetrics();
              fetcher.close();
            });
    context.addTaskCompletionListener(
        (TaskCompletionListener)
            ended -> {
              iterator.count();
              TrackedBlocks.finish(fetcher, context);
            });
    return iterator;
  }

  @SuppressWarnings("unchecked")
  private Iterator<Product2<K, C>> combined(final Iterator<Product2<K, C>> records) {
    final Aggregator<K, Object, C> aggregator = dependency.aggregator().get();
    final Iterator<?> result =
        dependency.mapSideCombine()
            ? aggregator.combineCombinersByKey(records, context)
            : aggregator.combineValuesByKey(
                (Iterator<Product2<K, Object>>) (Iterator<?>) records, context);
    return (Iterator<Product2<K, C>>) result;
  }

  @SuppressWarnings("unchecked")
  private Iterator<Product2<K, C>> sorted(final Iterator<Product2<K, C>> records) {
    Option<Aggregator<K, C, C>> aggregator = Option.empty();
    if (dependency.aggregator().isDefined()) {
      final Aggregator<K, Object, C> declared = dependency.aggregator().get();
      if (dependency.mapSideCombine()) {
        final Function2<C, C, C> merge = declared.mergeCombiners();
        aggregator = Option.apply(new Aggregator<>(new Identity<C>(), merge, merge));
      } else {
        // What was written is values; the aggregator makes combiners of them.
        aggregator = Option.apply((Aggregator<K, C, C>) (Aggregator<?, ?, ?>) declared);
      }
    }
    return SparkLinks.<K, C, C>newExternalSorter(
            context, aggregator, Option.empty(), dependency.keyOrdering(), dependency.serializer())
        .insertAllAndUpdateMetrics(records);
  }

  private <T> Iterator<T> interruptible(final Iterator<T> iterator) {
    return iterator instanceof InterruptibleIterator
        ? iterator
        : new InterruptibleIterator<>(context, iterator);
  }

  private static final class Identity<T> extends AbstractFunction1<T, T> {
    @Override
    public T apply(final T value) {
      return value;
    }
  }
}
