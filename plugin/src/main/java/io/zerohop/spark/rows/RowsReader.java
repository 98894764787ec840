package io.zerohop.spark.rows;

import io.zerohop.shuffle.ShuffleNode;
import io.zerohop.shuffle.block.BlockSource;
import io.zerohop.shuffle.fetch.BlockFetcher;
import io.zerohop.shuffle.transport.FallbackTransport;
import io.zerohop.spark.compat.SparkLinks;
import io.zerohop.spark.task.ReadEnd;
import io.zerohop.spark.task.ReduceTask;
import io.zerohop.spark.task.TrackedBlocks;
import java.util.List;
import org.apache.spark.Aggregator;
import org.apache.spark.InterruptibleIterator;
import org.apache.spark.ShuffleDependency;
import org.apache.spark.shuffle.ShuffleReader;
import scala.Function2;
import scala.Option;
import scala.Product2;
import scala.collection.Iterator;
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
  private final ReduceTask task;
  private final ShuffleNode node;
  private final FallbackTransport staged;

  /** A reader. */
  public RowsReader(
      final ShuffleDependency<K, Object, C> dependency,
      final ReduceTask task,
      final ShuffleNode node,
      final FallbackTransport staged) {
    this.dependency = dependency;
    this.task = task;
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
    final List<BlockSource> sources =
        TrackedBlocks.sources(task.blocks(), task.context().taskAttemptId());
    final BlockFetcher fetcher =
        node.fetch(
            sources,
            staged,
            task.pathMetrics().listener(task.metrics()),
            task.context()::isInterrupted);
    final UnsafeRows rows = UnsafeRows.of(dependency.serializer());
    final BlockRecords any = new StreamRecords(dependency.serializer());
    final ReadEnd end = new ReadEnd();
    final BlockRecordIterator iterator =
        new BlockRecordIterator(
            fetcher,
            rows == null ? any : new UnsafeRowRecords(rows, any, fetcher::hasMore),
            task.context(),
            task.metrics(),
            () -> {
              task.context().taskMetrics().mergeShuffleReadMetrics();
              fetcher.close();
              task.pathMetrics().end();
              end.done();
            });
    end.register(
        task.context(),
        () -> {
          iterator.count();
          try {
            TrackedBlocks.finish(fetcher, task.context());
          } finally {
            task.pathMetrics().end();
          }
        });
    return iterator;
  }

  @SuppressWarnings("unchecked")
  private Iterator<Product2<K, C>> combined(final Iterator<Product2<K, C>> records) {
    final Aggregator<K, Object, C> aggregator = dependency.aggregator().get();
    final Iterator<?> result =
        dependency.mapSideCombine()
            ? aggregator.combineCombinersByKey(records, task.context())
            : aggregator.combineValuesByKey(
                (Iterator<Product2<K, Object>>) (Iterator<?>) records, task.context());
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
            task.context(),
            aggregator,
            Option.empty(),
            dependency.keyOrdering(),
            dependency.serializer())
        .insertAllAndUpdateMetrics(records);
  }

  private <T> Iterator<T> interruptible(final Iterator<T> iterator) {
    return iterator instanceof InterruptibleIterator
        ? iterator
        : new InterruptibleIterator<>(task.context(), iterator);
  }

  private static final class Identity<T> extends AbstractFunction1<T, T> {
    @Override
    public T apply(final T value) {
      return value;
    }
  }
}
