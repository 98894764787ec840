package io.zerohop.spark.rows;

import io.zerohop.spark.compat.SparkLinks;
import java.io.IOException;
import org.apache.spark.Aggregator;
import org.apache.spark.Partitioner;
import org.apache.spark.ShuffleDependency;
import org.apache.spark.TaskContext;
import org.apache.spark.executor.TaskMetrics;
import org.apache.spark.serializer.SerializationStream;
import org.apache.spark.serializer.SerializerInstance;
import org.apache.spark.util.collection.ExternalSorter;
import scala.Option;
import scala.Product2;
import scala.Tuple2;
import scala.collection.AbstractIterator;
import scala.collection.Iterator;

/**
 * Records that Spark's own sorter must see first: those that are combined on the map side, and
 * those of a serializer that needs a stream per partition when there are too many partitions for
 * that. The sorter groups them by partition (and spills by itself); then one stream is open at a
 * time.
 *
 * @param <C> combiner type
 */
final class SortedAppender<K, V, C> implements RecordAppender<K, V> {
  private final MapOutputBuffer output;
  private final ShuffleDependency<K, V, C> dependency;
  private final TaskContext context;
  private final RowChecksums checksums;
  private long count;

  SortedAppender(
      final MapOutputBuffer output,
      final ShuffleDependency<K, V, C> dependency,
      final TaskContext context,
      final RowChecksums checksums) {
    this.output = output;
    this.dependency = dependency;
    this.context = context;
    this.checksums = checksums;
  }

  @Override
  public long appendAll(final Iterator<Product2<K, V>> records) throws IOException {
    final Option<Aggregator<K, V, C>> aggregator =
        dependency.mapSideCombine() ? dependency.aggregator() : Option.empty();
    final ExternalSorter<K, V, C> sorter =
        SparkLinks.newExternalSorter(
            context,
            aggregator,
            Option.apply(dependency.partitioner()),
            dependency.mapSideCombine() ? dependency.keyOrdering() : Option.empty(),
            dependency.serializer());
    try {
      sorter.insertAll(checked(records));
      writePartitions(sorter.partitionedIterator());
      final TaskMetrics metrics = context.taskMetrics();
      metrics.incMemoryBytesSpilled(sorter.memoryBytesSpilled());
      metrics.incDiskBytesSpilled(sorter.diskBytesSpilled());
      metrics.incPeakExecutionMemory(sorter.peakMemoryUsedBytes());
    } finally {
      sorter.stop();
    }
    return count;
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

  private void writePartitions(
      final Iterator<Tuple2<Object, Iterator<Product2<K, C>>>> partitions) {
    final SerializerInstance instance = dependency.serializer().newInstance();
    while (partitions.hasNext()) {
      final Tuple2<Object, Iterator<Product2<K, C>>> partition = partitions.next();
      final Iterator<Product2<K, C>> records = partition._2();
      if (records.hasNext()) {
        final int number = (Integer) partition._1();
        try (SerializationStream stream = instance.serializeStream(output.stream(number))) {
          while (records.hasNext()) {
            final Product2<K, C> rec = records.next();
            stream.writeKey(rec._1(), RelocatableAppender.OBJECT);
            stream.writeValue(rec._2(), RelocatableAppender.OBJECT);
            count++;
          }
        }
      }
    }
  }
}
