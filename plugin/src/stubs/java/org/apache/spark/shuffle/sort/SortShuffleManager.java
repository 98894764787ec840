package org.apache.spark.shuffle.sort;

import org.apache.spark.ShuffleDependency;
import org.apache.spark.SparkConf;
import org.apache.spark.TaskContext;
import org.apache.spark.shuffle.ShuffleBlockResolver;
import org.apache.spark.shuffle.ShuffleHandle;
import org.apache.spark.shuffle.ShuffleManager;
import org.apache.spark.shuffle.ShuffleReadMetricsReporter;
import org.apache.spark.shuffle.ShuffleReader;
import org.apache.spark.shuffle.ShuffleWriteMetricsReporter;
import org.apache.spark.shuffle.ShuffleWriter;

/**
 * What our manager links of Spark's sort shuffle manager. Only the compiler sees this source, and
 * writes no class of it; the link test checks our jar against the real one.
 *
 * <p>It is here because the real class narrows {@code shuffleBlockResolver} to a class that no one
 * jar can extend on all Spark versions (its constructors differ), which Java would make us return
 * too. Spark itself calls the method with the trait's type, as it is here.
 */
public class SortShuffleManager implements ShuffleManager {

  public SortShuffleManager(final SparkConf conf) {}

  public static boolean canUseBatchFetch(
      final int startPartition, final int endPartition, final TaskContext context) {
    throw new UnsupportedOperationException();
  }

  @Override
  public <K, V, C> ShuffleHandle registerShuffle(
      final int shuffleId, final ShuffleDependency<K, V, C> dependency) {
    throw new UnsupportedOperationException();
  }

  @Override
  public <K, V> ShuffleWriter<K, V> getWriter(
      final ShuffleHandle handle,
      final long mapId,
      final TaskContext context,
      final ShuffleWriteMetricsReporter metrics) {
    throw new UnsupportedOperationException();
  }

  @Override
  public <K, C> ShuffleReader<K, C> getReader(
      final ShuffleHandle handle,
      final int startMapIndex,
      final int endMapIndex,
      final int startPartition,
      final int endPartition,
      final TaskContext context,
      final ShuffleReadMetricsReporter metrics) {
    throw new UnsupportedOperationException();
  }

  @Override
  public boolean unregisterShuffle(final int shuffleId) {
    throw new UnsupportedOperationException();
  }

  @Override
  public ShuffleBlockResolver shuffleBlockResolver() {
    throw new UnsupportedOperationException();
  }

  @Override
  public void stop() {
    throw new UnsupportedOperationException();
  }
}
