package org.apache.spark.zerohop;

import java.io.IOException;
import java.util.stream.IntStream;
import org.apache.spark.SparkConf;
import org.apache.spark.TaskContext;
import org.apache.spark.scheduler.MapStatus;
import org.apache.spark.shuffle.BaseShuffleHandle;
import org.apache.spark.shuffle.ShuffleHandle;
import org.apache.spark.shuffle.ShuffleWriteMetricsReporter;
import org.apache.spark.shuffle.ShuffleWriter;
import org.apache.spark.shuffle.sort.SortShuffleManager;
import scala.Option;
import scala.Product2;
import scala.collection.Iterator;

/**
 * Sort shuffle that reports no row checksums, as any manager written for Spark 4.0 does. Shows that
 * the test of the row checksums fails without them.
 */
public final class ForgetfulShuffleManager extends SortShuffleManager {

  /**
   * Called by Spark.
   *
   * @param conf of the application
   */
  public ForgetfulShuffleManager(final SparkConf conf) {
    super(conf);
  }

  @Override
  public <K, V> ShuffleWriter<K, V> getWriter(
      final ShuffleHandle handle,
      final long mapId,
      final TaskContext context,
      final ShuffleWriteMetricsReporter metrics) {
    final int partitions =
        ((BaseShuffleHandle<?, ?, ?>) handle).dependency().partitioner().numPartitions();
    return new Forgetful<>(super.getWriter(handle, mapId, context, metrics), partitions);
  }

  private static final class Forgetful<K, V> extends ShuffleWriter<K, V> {
    private final ShuffleWriter<K, V> writer;
    private final int partitions;

    Forgetful(final ShuffleWriter<K, V> writer, final int partitions) {
      this.writer = writer;
      this.partitions = partitions;
    }

    @Override
    public void write(final Iterator<Product2<K, V>> records) throws IOException {
      writer.write(records);
    }

    @Override
    public Option<MapStatus> stop(final boolean success) {
      final Option<MapStatus> status = writer.stop(success);
      if (status.isEmpty()) {
        return status;
      }
      final long[] sizes =
          IntStream.range(0, partitions).mapToLong(i -> status.get().getSizeForBlock(i)).toArray();
      return Option.apply(
          MapStatus.apply(status.get().location(), sizes, status.get().mapId(), 0L));
    }

    @Override
    public long[] getPartitionLengths() {
      return writer.getPartitionLengths();
    }
  }
}
