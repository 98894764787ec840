package io.zerohop.spark.rows;

import java.io.IOException;
import org.apache.spark.Partitioner;
import org.apache.spark.sql.catalyst.expressions.UnsafeRow;
import org.apache.spark.unsafe.Platform;
import scala.Product2;
import scala.collection.Iterator;

/**
 * SQL rows, straight from the row to the arena in one copy. The bytes are those that Spark's own
 * UnsafeRowSerializer would write (a big-endian length, then the row), so any reader may read them.
 */
final class UnsafeRowAppender<K, V> implements RecordAppender<K, V> {
  private final MapOutputBuffer output;
  private final Partitioner partitioner;
  private final RowChecksums checksums;
  private final UnsafeRows codec;

  UnsafeRowAppender(
      final MapOutputBuffer output,
      final Partitioner partitioner,
      final RowChecksums checksums,
      final UnsafeRows codec) {
    this.output = output;
    this.partitioner = partitioner;
    this.checksums = checksums;
    this.codec = codec;
  }

  @Override
  public long appendAll(final Iterator<Product2<K, V>> records) throws IOException {
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
      Platform.copyMemory(row.getBaseObject(), row.getBaseOffset(), null, at + Integer.BYTES, size);
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
