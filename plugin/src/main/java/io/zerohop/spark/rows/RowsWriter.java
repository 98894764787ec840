package io.zerohop.spark.rows;

import io.zerohop.device.ZerohopException;
import io.zerohop.shuffle.write.MapOutput;
import io.zerohop.spark.compat.SparkLinks;
import io.zerohop.spark.rows.MapOutputBuffer.PagePool;
import io.zerohop.spark.rows.RowsReader.UnsafeRows;
import io.zerohop.spark.task.FailureOutcome;
import io.zerohop.spark.task.FailureOutcome.LinkFailure;
import io.zerohop.spark.task.MapTask;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.util.function.Supplier;
import org.apache.spark.Aggregator;
import org.apache.spark.Partitioner;
import org.apache.spark.ShuffleDependency;
import org.apache.spark.executor.TaskMetrics;
import org.apache.spark.scheduler.MapStatus;
import org.apache.spark.serializer.SerializationStream;
import org.apache.spark.serializer.Serializer;
import org.apache.spark.serializer.SerializerInstance;
import org.apache.spark.shuffle.ShuffleWriter;
import org.apache.spark.shuffle.checksum.RowBasedChecksum;
import org.apache.spark.sql.catalyst.expressions.UnsafeRow;
import org.apache.spark.unsafe.Platform;
import org.apache.spark.util.TaskCompletionListener;
import org.apache.spark.util.collection.ExternalSorter;
import org.jspecify.annotations.Nullable;
import scala.Option;
import scala.Product2;
import scala.Tuple2;
import scala.collection.AbstractIterator;
import scala.collection.Iterator;
import scala.reflect.ClassTag;
import scala.reflect.ClassTag$;

/**
 * Writes the records of one map task. What the dependency's serializer allows decides how records
 * become bytes.
 *
 * @param <K> key type
 * @param <V> value type
 * @param <C> combiner type
 */
public final class RowsWriter<K, V, C> extends ShuffleWriter<K, V> {
  private static final ClassTag<Object> OBJECT = ClassTag$.MODULE$.Object();
  private static final int SCRATCH_BYTES = 1 << 20;

  private final ShuffleDependency<K, V, C> dependency;
  private final MapTask task;
  private final RowChecksums checksums;
  private final MapOutputBuffer output;
  private final int streamsLimit;

  /** Absent until the output is committed. */
  private long @Nullable [] partitionLengths;

  /**
   * A writer.
   *
   * @param output begins the map output
   * @param writeBufferBytes limit of a batch's memory
   * @param streamsLimit most serialization streams to hold open at a time
   */
  public RowsWriter(
      final ShuffleDependency<K, V, C> dependency,
      final MapTask task,
      final Supplier<MapOutput> output,
      final PagePool pages,
      final long writeBufferBytes,
      final int streamsLimit) {
    this.dependency = dependency;
    this.task = task;
    this.streamsLimit = streamsLimit;
    this.checksums = RowChecksums.of(dependency);
    final int partitions = dependency.partitioner().numPartitions();
    this.output = new MapOutputBuffer(pages, partitions, writeBufferBytes, output);
    // Spark stops a writer after exceptions only; errors that an executor survives end up here.
    task.context().addTaskCompletionListener((TaskCompletionListener) ended -> this.output.close());
  }

  @Override
  public void write(final Iterator<Product2<K, V>> records) throws IOException {
    try {
      final long count = append(records);
      final long[] lengths = output.commit();
      partitionLengths = lengths;
      long bytes = 0;
      for (final long length : lengths) {
        bytes += length;
      }
      task.metrics().incRecordsWritten(count);
      task.metrics().incBytesWritten(bytes);
      task.metrics().incWriteTime(output.packNanos());
      task.context().taskMetrics().incMemoryBytesSpilled(output.spilledBytes());
      task.context().taskMetrics().incDiskBytesSpilled(output.spilledBytes());
    } catch (final ZerohopException e) {
      throw FailureOutcome.raise(e);
    } catch (final LinkageError e) {
      throw LinkFailure.raise(e);
    }
  }

  /**
   * Appends all records, in the way that the dependency's serializer allows.
   *
   * @return how many there were
   */
  private long append(final Iterator<Product2<K, V>> records) throws IOException {
    final Serializer serializer = dependency.serializer();
    final UnsafeRows rows = UnsafeRows.of(serializer);
    if (dependency.mapSideCombine()) {
      return appendSorted(records);
    }
    if (rows != null) {
      return UnsafeRowAppender.append(records, rows, dependency.partitioner(), checksums, output);
    }
    if (serializer.supportsRelocationOfSerializedObjects()) {
      return appendRelocatable(records);
    }
    if (dependency.partitioner().numPartitions() <= streamsLimit) {
      return appendToStreams(records);
    }
    return appendSorted(records);
  }

  /**
   * Appends records of any serializer to few partitions: a stream for each partition that has a
   * record, all open at once.
   */
  private long appendToStreams(final Iterator<Product2<K, V>> records) throws IOException {
    final Partitioner partitioner = dependency.partitioner();
    final RowChecksums sums = checksums;
    final SerializerInstance instance = dependency.serializer().newInstance();
    final SerializationStream[] streams = new SerializationStream[partitioner.numPartitions()];
    long count = 0;
    while (records.hasNext()) {
      final Product2<K, V> rec = records.next();
      final int partition = partitioner.getPartition(rec._1());
      if (streams[partition] == null) {
        streams[partition] = instance.serializeStream(output.stream(partition));
      }
      sums.update(partition, rec._1(), rec._2());
      streams[partition].writeKey(rec._1(), OBJECT);
      streams[partition].writeValue(rec._2(), OBJECT);
      count++;
    }
    for (final SerializationStream stream : streams) {
      if (stream != null) {
        stream.close();
      }
    }
    return count;
  }

  /**
   * Appends records of a serializer whose objects may be moved about in a stream: one stream for
   * all partitions, flushed after each record, so thousands of partitions cost one buffer.
   */
  private long appendRelocatable(final Iterator<Product2<K, V>> records) throws IOException {
    final Partitioner partitioner = dependency.partitioner();
    final RowChecksums sums = checksums;
    final Scratch scratch = new Scratch();
    long count = 0;
    try (SerializationStream stream =
        dependency.serializer().newInstance().serializeStream(scratch)) {
      while (records.hasNext()) {
        final Product2<K, V> rec = records.next();
        final int partition = partitioner.getPartition(rec._1());
        sums.update(partition, rec._1(), rec._2());
        stream.writeKey(rec._1(), OBJECT);
        stream.writeValue(rec._2(), OBJECT);
        stream.flush();
        scratch.moveTo(partition);
        count++;
      }
    }
    return count;
  }

  /**
   * Appends records that Spark's own sorter must see first. These are combined on the map side, or
   * of a serializer that needs a stream per partition when there are too many partitions for that.
   * The sorter groups them by partition (and spills by itself); then one stream is open at a time.
   */
  private long appendSorted(final Iterator<Product2<K, V>> records) throws IOException {
    final boolean combine = dependency.mapSideCombine();
    final Option<Aggregator<K, V, C>> aggregator =
        combine ? dependency.aggregator() : Option.empty();
    final ExternalSorter<K, V, C> sorter =
        SparkLinks.newExternalSorter(
            task.context(),
            aggregator,
            Option.apply(dependency.partitioner()),
            combine ? dependency.keyOrdering() : Option.empty(),
            dependency.serializer());
    try {
      sorter.insertAll(checked(records));
      final long count = appendPartitions(sorter.partitionedIterator());
      final TaskMetrics metrics = task.context().taskMetrics();
      metrics.incMemoryBytesSpilled(sorter.memoryBytesSpilled());
      metrics.incDiskBytesSpilled(sorter.diskBytesSpilled());
      metrics.incPeakExecutionMemory(sorter.peakMemoryUsedBytes());
      return count;
    } finally {
      sorter.stop();
    }
  }

  /** Spark's row checksum covers the records as they came in, before they are combined. */
  private Iterator<Product2<K, V>> checked(final Iterator<Product2<K, V>> records) {
    if (!checksums.active()) {
      return records;
    }
    final Partitioner partitioner = dependency.partitioner();
    return new AbstractIterator<>() {
      @Override
      public boolean hasNext() {
        return records.hasNext();
      }

      @Override
      public Product2<K, V> next() {
        final Product2<K, V> rec = records.next();
        checksums.update(partitioner.getPartition(rec._1()), rec._1(), rec._2());
        return rec;
      }
    };
  }

  private long appendPartitions(
      final Iterator<Tuple2<Object, Iterator<Product2<K, C>>>> partitions) {
    final SerializerInstance instance = dependency.serializer().newInstance();
    long count = 0;
    while (partitions.hasNext()) {
      final Tuple2<Object, Iterator<Product2<K, C>>> partition = partitions.next();
      final Iterator<Product2<K, C>> records = partition._2();
      if (records.hasNext()) {
        final int number = (Integer) partition._1();
        try (SerializationStream stream = instance.serializeStream(output.stream(number))) {
          while (records.hasNext()) {
            final Product2<K, C> rec = records.next();
            stream.writeKey(rec._1(), OBJECT);
            stream.writeValue(rec._2(), OBJECT);
            count++;
          }
        }
      }
    }
    return count;
  }

  @Override
  public Option<MapStatus> stop(final boolean success) {
    output.close();
    if (!success || partitionLengths == null) {
      return Option.empty();
    }
    return Option.apply(
        SparkLinks.newMapStatus(
            task.location(), partitionLengths, task.mapId(), checksums.value()));
  }

  @Override
  public long @Nullable [] getPartitionLengths() {
    return partitionLengths;
  }

  /**
   * SQL rows, straight from the row to the arena in one copy. The bytes are those that Spark's own
   * UnsafeRowSerializer would write (a big-endian length, then the row), so any reader may read
   * them.
   *
   * <p>A class of its own, since it links what a Spark without these rows need not have.
   */
  private static final class UnsafeRowAppender {
    static <K, V> long append(
        final Iterator<Product2<K, V>> records,
        final UnsafeRows codec,
        final Partitioner partitioner,
        final RowChecksums checksums,
        final MapOutputBuffer output)
        throws IOException {
      final boolean checked = checksums.active();
      long count = 0;
      long bytes = 0;
      while (records.hasNext()) {
        final Product2<K, V> rec = records.next();
        final K key = rec._1();
        final UnsafeRow row = (UnsafeRow) rec._2();
        final int partition = partitioner.getPartition(key);
        final int size = row.getSizeInBytes();
        final long at = output.reserve(partition, Integer.BYTES + size);
        Platform.putInt(null, at, UnsafeRows.bigEndian(size));
        Platform.copyMemory(
            row.getBaseObject(), row.getBaseOffset(), null, at + Integer.BYTES, size);
        if (checked) {
          checksums.update(partition, key, row);
        }
        bytes += size;
        count++;
      }
      if (count > 0) {
        codec.addDataSize(bytes);
      }
      return count;
    }
  }

  /** Takes each record of the stream of relocatable records before it moves on. */
  private final class Scratch extends ByteArrayOutputStream {
    Scratch() {
      super(SCRATCH_BYTES);
    }

    void moveTo(final int partition) throws IOException {
      output.append(partition, buf, 0, count);
      reset();
    }
  }

  /**
   * Spark's order-independent checksum over a map task's records, by which the driver notices that
   * a retried map task gave other rows than before (from Spark 4.1 on). A manager that reports 0
   * turns that protection off, so every record goes through here.
   *
   * <p>Not thread safe: one per map task.
   */
  private static class RowChecksums {
    /** Computes nothing. */
    private static final RowChecksums NONE = new RowChecksums();

    /**
     * The checksums that the dependency asks for; inactive before Spark 4.1 and where it asks none.
     */
    static RowChecksums of(final ShuffleDependency<?, ?, ?> dependency) {
      return Support.PRESENT ? Since41.of(dependency) : NONE;
    }

    void update(final int partition, final Object key, final Object value) {}

    /** The value for the map status. */
    long value() {
      return 0;
    }

    boolean active() {
      return false;
    }

    private static final class Support {
      static final boolean PRESENT = present();

      private static boolean present() {
        try {
          ShuffleDependency.class.getMethod("rowBasedChecksums");
          return true;
        } catch (final NoSuchMethodException before41) {
          return false;
        }
      }
    }

    /** Linked only where the method exists. */
    private static final class Since41 extends RowChecksums {
      private final RowBasedChecksum[] checksums;

      private Since41(final RowBasedChecksum[] checksums) {
        this.checksums = checksums;
      }

      static RowChecksums of(final ShuffleDependency<?, ?, ?> dependency) {
        final RowBasedChecksum[] checksums = dependency.rowBasedChecksums();
        return checksums == null || checksums.length == 0 ? NONE : new Since41(checksums);
      }

      @Override
      void update(final int partition, final Object key, final Object value) {
        checksums[partition].update(key, value);
      }

      @Override
      long value() {
        return RowBasedChecksum.getAggregatedChecksumValue(checksums);
      }

      @Override
      boolean active() {
        return true;
      }
    }
  }
}
