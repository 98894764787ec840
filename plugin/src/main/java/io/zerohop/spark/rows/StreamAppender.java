package io.zerohop.spark.rows;

import java.io.IOException;
import org.apache.spark.Partitioner;
import org.apache.spark.serializer.SerializationStream;
import org.apache.spark.serializer.Serializer;
import org.apache.spark.serializer.SerializerInstance;
import scala.Product2;
import scala.collection.Iterator;

/**
 * Records of any serializer into few partitions: a stream for each partition that has a record, all
 * open at once.
 */
final class StreamAppender<K, V> implements RecordAppender<K, V> {
  private final MapOutputBuffer output;
  private final Partitioner partitioner;
  private final Serializer serializer;
  private final RowChecksums checksums;

  StreamAppender(
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
    final SerializerInstance instance = serializer.newInstance();
    final SerializationStream[] streams = new SerializationStream[partitioner.numPartitions()];
    long count = 0;
    while (records.hasNext()) {
      final Product2<K, V> rec = records.next();
      final int partition = partitioner.getPartition(rec._1());
      if (streams[partition] == null) {
        streams[partition] = instance.serializeStream(output.stream(partition));
      }
      checksums.update(partition, rec._1(), rec._2());
      streams[partition].writeKey(rec._1(), RelocatableAppender.OBJECT);
      streams[partition].writeValue(rec._2(), RelocatableAppender.OBJECT);
      count++;
    }
    for (final SerializationStream stream : streams) {
      if (stream != null) {
        stream.close();
      }
    }
    return count;
  }
}
