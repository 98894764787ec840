package io.zerohop.spark.rows;

import io.zerohop.shuffle.block.ReadSide;
import io.zerohop.shuffle.fetch.BlockFetchException;
import io.zerohop.shuffle.fetch.Fetch;
import io.zerohop.shuffle.fetch.FetchedBlock;
import io.zerohop.shuffle.fetch.Fetches;
import io.zerohop.shuffle.transport.Transport.FallbackTransport;
import io.zerohop.spark.compat.SparkFeature;
import io.zerohop.spark.compat.SparkLinks;
import io.zerohop.spark.compat.SparkProbe;
import io.zerohop.spark.log.SparkCode;
import io.zerohop.spark.task.FailureOutcome;
import io.zerohop.spark.task.FailureOutcome.LinkFailure;
import io.zerohop.spark.task.ReduceTask;
import io.zerohop.spark.task.ReduceTask.ReadEnd;
import java.lang.reflect.Field;
import java.nio.ByteOrder;
import java.util.NoSuchElementException;
import java.util.function.BooleanSupplier;
import org.apache.spark.Aggregator;
import org.apache.spark.InterruptibleIterator;
import org.apache.spark.ShuffleDependency;
import org.apache.spark.TaskContext;
import org.apache.spark.serializer.Serializer;
import org.apache.spark.serializer.SerializerInstance;
import org.apache.spark.shuffle.ShuffleReadMetricsReporter;
import org.apache.spark.shuffle.ShuffleReader;
import org.apache.spark.sql.catalyst.expressions.UnsafeRow;
import org.apache.spark.unsafe.Platform;
import org.apache.spark.util.AccumulatorV2;
import org.jspecify.annotations.Nullable;
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
  private final Fetches fetches;
  private final FallbackTransport staged;

  /** A reader. */
  public RowsReader(
      final ShuffleDependency<K, Object, C> dependency,
      final ReduceTask task,
      final Fetches fetches,
      final FallbackTransport staged) {
    this.dependency = dependency;
    this.task = task;
    this.fetches = fetches;
    this.staged = staged;
  }

  @Override
  public Iterator<Product2<K, C>> read() {
    try {
      return begin();
    } catch (final LinkageError e) {
      throw LinkFailure.raise(e);
    }
  }

  @SuppressWarnings("unchecked")
  private Iterator<Product2<K, C>> begin() {
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
    final Fetch fetch =
        fetches.begin(
            task.sources(0),
            staged,
            task.pathMetrics(),
            ReadSide.HOST,
            task.context()::isInterrupted);
    final UnsafeRows rows = UnsafeRows.of(dependency.serializer());
    final BlockRecords any = streamed(dependency.serializer().newInstance());
    final BlockRecordIterator iterator =
        new BlockRecordIterator(
            fetch, rows == null ? any : new UnsafeRowRecords(rows, any, fetch::hasMore), task);
    iterator.end.begin(task, fetch, iterator::count);
    return iterator;
  }

  /** Records of any serializer: its own stream, right over the block's bytes. */
  @SuppressWarnings("unchecked")
  private static BlockRecords streamed(final SerializerInstance instance) {
    return block ->
        (Iterator<Tuple2<Object, Object>>)
            (Iterator<?>) instance.deserializeStream(block.stream()).asKeyValueIterator();
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

    private final Fetch fetch;
    private final BlockRecords records;
    private final TaskContext context;
    private final ShuffleReadMetricsReporter metrics;
    private final ReadEnd end = new ReadEnd();
    private Iterator<? extends Product2<?, ?>> current = Iterator.empty();
    private long uncounted;
    private boolean ended;

    BlockRecordIterator(final Fetch fetch, final BlockRecords records, final ReduceTask task) {
      this.fetch = fetch;
      this.records = records;
      this.context = task.context();
      this.metrics = task.metrics();
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
      } catch (final LinkageError e) {
        throw LinkFailure.raise(e);
      } catch (final Exception e) { // Scala declares none: a serializer may throw any.
        throw failed(e);
      }
    }

    private boolean nextBlock() {
      count();
      context.killTaskIfInterrupted();
      if (fetch.next()) {
        current = records.of(fetch.block());
        return true;
      }
      ended = true;
      current = Iterator.empty();
      end.done();
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
      if (fetch.isClosed()) {
        // Threads that feed a process may outlive their task; what they would read may be gone.
        throw new IllegalStateException("The task that reads these blocks has ended");
      }
      try {
        return current.next();
      } catch (final LinkageError e) {
        throw LinkFailure.raise(e);
      } catch (final Exception e) { // Scala declares none: a serializer may throw any.
        throw failed(e);
      }
    }

    /** A thread that outlives its task says nothing of the blocks' owner. */
    private RuntimeException failed(final Exception failure) {
      throw context.isCompleted() || fetch.isClosed()
          ? FailureOutcome.asItIs(failure)
          : FailureOutcome.raise(failure);
    }

    /** Tells Spark of the records handed out since the last time; once more when the task ends. */
    void count() {
      metrics.incRecordsRead(uncounted);
      uncounted = 0;
    }
  }

  /**
   * SQL rows in place: one row object, pointed at the mapped bytes of each row in turn. As with
   * Spark's own serializer a row is valid until the next one is asked for; whoever keeps it copies
   * it. The last of all rows stays valid, and with it what points into it, so that one is copied;
   * the mappings are not needed any more then, however long the task goes on. Staged blocks have no
   * mapped bytes and go through the serializer.
   */
  static final class UnsafeRowRecords implements BlockRecords {
    private final UnsafeRow row;
    private final Tuple2<Object, Object> pair;
    private final BlockRecords staged;
    private final BooleanSupplier hasMore;

    /**
     * @param staged reads blocks that have no mapped bytes
     * @param hasMore whether there are blocks behind the one that was asked for last
     */
    UnsafeRowRecords(
        final UnsafeRows codec, final BlockRecords staged, final BooleanSupplier hasMore) {
      this.row = new UnsafeRow(codec.numFields());
      this.pair = new Tuple2<>(0, row);
      this.staged = staged;
      this.hasMore = hasMore;
    }

    @Override
    public Iterator<? extends Product2<?, ?>> of(final FetchedBlock block) {
      return block.extentCount() == 0 ? staged.of(block) : new InPlace(block);
    }

    private final class InPlace extends AbstractIterator<Product2<?, ?>> {
      private final FetchedBlock block;
      private final int extents;
      private final boolean last;
      private int extent;
      private long at;
      private long end;

      InPlace(final FetchedBlock block) {
        this.block = block;
        this.extents = block.extentCount();
        this.last = !hasMore.getAsBoolean();
      }

      @Override
      public boolean hasNext() {
        while (at == end && extent < extents) {
          at = block.extentAddress(extent);
          end = at + block.extentLength(extent);
          extent++;
        }
        return at != end;
      }

      @Override
      public Product2<?, ?> next() {
        if (!hasNext()) {
          throw new NoSuchElementException(block.block().toString());
        }
        final long left = end - at - Integer.BYTES;
        final int size = left < 0 ? -1 : UnsafeRows.bigEndian(Platform.getInt(null, at));
        if (size < 0 || size > left) {
          throw damaged(size, left);
        }
        final long bytes = at + Integer.BYTES;
        at = bytes + size;
        if (last && !hasNext()) {
          row.pointTo(copy(bytes, size), Platform.BYTE_ARRAY_OFFSET, size);
        } else {
          row.pointTo(null, bytes, size);
        }
        return pair;
      }

      private BlockFetchException damaged(final int size, final long left) {
        return new BlockFetchException(
            block.block(),
            block.source(),
            SparkCode.ROWS_DAMAGED
                .says("the rows of a block are damaged")
                .at(
                    block.block()
                        + " of executor "
                        + block.source().executorId()
                        + ", path "
                        + block.path().label())
                .because("a row of " + size + " bytes, " + left + " left")
                .remedy(
                    "set spark.zerohop.checksum.enabled=true: it notices this before any row is"
                        + " used"),
            null);
      }

      private byte[] copy(final long address, final int size) {
        final byte[] copy = new byte[size];
        Platform.copyMemory(null, address, copy, Platform.BYTE_ARRAY_OFFSET, size);
        return copy;
      }
    }
  }

  /** A way to turn the bytes of a block into records. Belongs to one reader; holds no block. */
  private interface BlockRecords {

    /** The records of a block, valid until the fetch moves past it. */
    Iterator<? extends Product2<?, ?>> of(FetchedBlock block);
  }

  /**
   * Reads from Spark's UnsafeRowSerializer what the fast path for SQL rows needs: the number of
   * fields, and the "data size" metric, which adaptive execution plans with. Both are private
   * there; if a Spark version hides them elsewhere, the fast path is not taken and the serializer
   * itself is used.
   *
   * @param numFields fields of each row
   * @param dataSize the metric, if there is one
   */
  record UnsafeRows(int numFields, @Nullable AccumulatorV2<?, ?> dataSize) {
    private static final String SERIALIZER = "org.apache.spark.sql.execution.UnsafeRowSerializer";
    private static final boolean LITTLE_ENDIAN = ByteOrder.nativeOrder() == ByteOrder.LITTLE_ENDIAN;

    /** The fast path for this serializer, or null if it is another one or not as we know it. */
    static @Nullable UnsafeRows of(final Serializer serializer) {
      if (!SERIALIZER.equals(serializer.getClass().getName())
          || !SparkProbe.here().has(SparkFeature.SQL_ROWS)) {
        return null;
      }
      try {
        final Field fields = serializer.getClass().getDeclaredField("numFields");
        final Field metric = serializer.getClass().getDeclaredField("dataSize");
        fields.setAccessible(true);
        metric.setAccessible(true);
        return new UnsafeRows(
            fields.getInt(serializer), (AccumulatorV2<?, ?>) metric.get(serializer));
      } catch (final ReflectiveOperationException | RuntimeException e) {
        return null;
      }
    }

    /** Adds to the metric, which is a sum. */
    @SuppressWarnings("unchecked")
    void addDataSize(final long bytes) {
      if (dataSize != null) {
        ((AccumulatorV2<Object, Object>) dataSize).add(bytes);
      }
    }

    /** Converts between the machine's order and the stream's. */
    static int bigEndian(final int value) {
      return LITTLE_ENDIAN ? Integer.reverseBytes(value) : value;
    }
  }
}
