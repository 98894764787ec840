package io.zerohop.spark.rows;

import java.io.ByteArrayOutputStream;
import java.io.IOException;
import org.apache.spark.Partitioner;
import org.apache.spark.serializer.SerializationStream;
import org.apache.spark.serializer.Serializer;
import scala.Product2;
import scala.collection.Iterator;
import scala.reflect.ClassTag;
import scala.reflect.ClassTag$;

/**
 * Appends records of a serializer with relocatable objects: one stream for all partitions, flushed
 * after each record, so that thousands of partitions need one buffer.
 */
final class RelocatableAppender<K, V> implements RecordAppender<K, V> {
  static final ClassTag<Object> OBJECT = ClassTag$.MODULE$.Object();
  private static final int SCRATCH_BYTES = 1 << 20;

  private final MapOutputBuffer output;
  private final Partitioner partitioner;
  private final Serializer serializer;
  private final RowChecksums checksums;

  RelocatableAppender(
      final MapOutputBuffer output,
      final Partitioner partitioner,
      final Serializer serializer,
      final RowChecksums checksums) {
    this.output = output;
    this.partitioner = partitioner;
    this.serializer = serializer;
    this.checksums = checksums;
  }

  @Override
  public long appendAll(final Iterator<Product2<K, V>> records) throws IOException {
    final Scratch scratch = new Scratch();
    long count = 0;
    try (SerializationStream stream = serializer.newInstance().serializeStream(scratch)) {
      while (records.hasNext()) {
        final Product2<K, V> rec = records.next();
        final int partition = partitioner.getPartition(rec._1());
        checksums.update(partition, rec._1(), rec._2());
        stream.writeKey(rec._1(), OBJECT);
        stream.writeValue(rec._2(), OBJECT);
        stream.flush();
        scratch.moveTo(partition);
        count++;
      }
    }
    return count;
  }

  private final class Scratch extends ByteArrayOutputStream {
    Scratch() {
      super(SCRATCH_BYTES);
    }

    void moveTo(final int partition) throws IOException {
      output.append(partition, buf, 0, count);
      reset();
    }
  }
}
