package io.zerohop.spark;

import org.apache.spark.ShuffleDependency;
import org.apache.spark.SparkConf;
import org.apache.spark.TaskContext;
import org.apache.spark.shuffle.ShuffleBlockResolver;
import org.apache.spark.shuffle.ShuffleHandle;
import org.apache.spark.shuffle.ShuffleReadMetricsReporter;
import org.apache.spark.shuffle.ShuffleReader;
import org.apache.spark.shuffle.ShuffleWriteMetricsReporter;
import org.apache.spark.shuffle.ShuffleWriter;
import org.apache.spark.shuffle.sort.SortShuffleManager;

/**
 * The shuffle manager that {@link ZerohopPlugin} sets, and that users of Spark 3.5 name: {@code
 * spark.shuffle.manager=io.zerohop.spark.ZerohopShuffleManager}. An {@link EntryClass}; everything
 * is done by {@code MemoryShuffleManager}.
 *
 * <p>It is a sort shuffle manager since Spark SQL copies every row before it hands it to any other
 * kind, which might keep rows; our writer is done with a row before it asks for the next one.
 *
 * <p>Thread safe.
 */
public final class ZerohopShuffleManager extends SortShuffleManager {
  /** Not typed by Spark's trait: 4.3 splits it, and moves {@link #shuffleBlockResolver}. */
  private final SortShuffleManager manager;

  /** Called by Spark, in the driver and in every executor. */
  public ZerohopShuffleManager(final SparkConf conf, final boolean isDriver) {
    super(EntryClass.onNewJava("spark.shuffle.manager", conf));
    this.manager =
        EntryClass.make(
            SortShuffleManager.class,
            "MemoryShuffleManager",
            new Class<?>[] {SparkConf.class, boolean.class},
            conf,
            isDriver);
  }

  /** What does everything: a {@code MemoryShuffleManager}. */
  SortShuffleManager manager() {
    return manager;
  }

  @Override
  public <K, V, C> ShuffleHandle registerShuffle(
      final int shuffleId, final ShuffleDependency<K, V, C> dependency) {
    return manager.registerShuffle(shuffleId, dependency);
  }

  @Override
  public <K, V> ShuffleWriter<K, V> getWriter(
      final ShuffleHandle handle,
      final long mapId,
      final TaskContext context,
      final ShuffleWriteMetricsReporter metrics) {
    return manager.getWriter(handle, mapId, context, metrics);
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
    return manager.getReader(
        handle, startMapIndex, endMapIndex, startPartition, endPartition, context, metrics);
  }

  @Override
  public boolean unregisterShuffle(final int shuffleId) {
    return manager.unregisterShuffle(shuffleId);
  }

  @Override
  public ShuffleBlockResolver shuffleBlockResolver() {
    return manager.shuffleBlockResolver();
  }

  @Override
  public void stop() {
    manager.stop();
  }
}
