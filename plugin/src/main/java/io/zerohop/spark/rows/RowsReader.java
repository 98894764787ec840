package io.zerohop.spark.rows;

import io.zerohop.device.ZerohopException;
import io.zerohop.shuffle.ShuffleNode;
import io.zerohop.shuffle.block.BlockSource;
import io.zerohop.shuffle.fetch.BlockFetchException;
import io.zerohop.shuffle.fetch.BlockFetcher;
import io.zerohop.shuffle.fetch.FetchedBlock;
import io.zerohop.shuffle.transport.FallbackTransport;
import io.zerohop.spark.compat.SparkLinks;
import io.zerohop.spark.log.SparkCode;
import io.zerohop.spark.task.FailureOutcome;
import io.zerohop.spark.task.ReadEnd;
import io.zerohop.spark.task.ReduceTask;
import io.zerohop.spark.task.TrackedBlocks;
import java.util.List;
import java.util.NoSuchElementException;
import org.apache.spark.Aggregator;
import org.apache.spark.InterruptibleIterator;
import org.apache.spark.ShuffleDependency;
import org.apache.spark.TaskContext;
import org.apache.spark.serializer.Serializer;
import org.apache.spark.serializer.SerializerInstance;
import org.apache.spark.shuffle.ShuffleReadMetricsReporter;
import org.apache.spark.shuffle.ShuffleReader;
import scala.Function2;
import scala.Option;
import scala.Product2;
import scala.Tuple2;
import scala.collection.AbstractIterator;
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

  /**
   * The records of all blocks of a reader, one block after the other. Counts records and lets a
   * killed task go at every block and every {@value #RECORDS_BETWEEN_CHECKS} records. Belongs to
   * one task.
   */
  private static final class BlockRecordIterator extends AbstractIterator<Product2<?, ?>> {
    private static final int RECORDS_BETWEEN_CHECKS = 1024;

    private final BlockFetcher fetcher;
    private final BlockRecords records;
    private final TaskContext context;
    private final ShuffleReadMetricsReporter metrics;
    private final Runnable atEnd;
    private Iterator<? extends Product2<?, ?>> current = Iterator.empty();
    private long uncounted;
    private boolean ended;

    BlockRecordIterator(
        final BlockFetcher fetcher,
        final BlockRecords records,
        final TaskContext context,
        final ShuffleReadMetricsReporter metrics,
        final Runnable atEnd) {
      this.fetcher = fetcher;
      this.records = records;
      this.context = context;
      this.metrics = metrics;
      this.atEnd = atEnd;
    }

    @Override
    public boolean hasNext() {
      try {
        while (!current.hasNext()) {
          if (ended || !nextBlock()) {
            return false;
          }
        }
        return true;
      } catch (final ZerohopException e) {
        throw FailureOutcome.raise(located(e));
      }
    }

    private boolean nextBlock() {
      count();
      context.killTaskIfInterrupted();
      if (fetcher.next()) {
        current = records.of(fetcher.block());
        return true;
      }
      ended = true;
      current = Iterator.empty();
      atEnd.run();
      return false;
    }

    @Override
    public Product2<?, ?> next() {
      if (!hasNext()) {
        throw new NoSuchElementException("No more records");
      }
      if (++uncounted >= RECORDS_BETWEEN_CHECKS) {
        count();
        context.killTaskIfInterrupted();
      }
      if (fetcher.isClosed()) {
        // Threads that feed a process may outlive their task; what they would read may be gone.
        throw new IllegalStateException("The task that reads these blocks has ended");
      }
      try {
        return current.next();
      } catch (final ZerohopException e) {
        throw FailureOutcome.raise(located(e));
      }
    }

    /** Adds the owner of the block, which its codec does not know, to a failure. */
    private ZerohopException located(final ZerohopException failure) {
      if (failure instanceof DamagedBlockException) {
        final FetchedBlock damaged = fetcher.block();
        return new BlockFetchException(
            damaged.block(),
            damaged.source(),
            failure.message().code(SparkCode.ROWS_DAMAGED),
            failure);
      }
      return failure;
    }

    /** Tells Spark of the records handed out since the last time; once more when the task ends. */
    void count() {
      metrics.incRecordsRead(uncounted);
      uncounted = 0;
    }
  }

  /** Records of any serializer: its own stream, right over the block's bytes. */
  private static final class StreamRecords implements BlockRecords {
    private final SerializerInstance instance;

    StreamRecords(final Serializer serializer) {
      instance = serializer.newInstance();
    }

    @Override
    @SuppressWarnings("unchecked")
    public Iterator<? extends Product2<?, ?>> of(final FetchedBlock block) {
      return (Iterator<Tuple2<Object, Object>>)
          (Iterator<?>) instance.deserializeStream(block.stream()).asKeyValueIterator();
    }
  }
}
