package io.zerohop.spark.rows;

import io.zerohop.device.ZerohopException;
import io.zerohop.shuffle.write.MapOutputWriter;
import io.zerohop.spark.compat.SparkLinks;
import io.zerohop.spark.spillfiles.MapOutputFiles;
import io.zerohop.spark.spillfiles.OverflowingOutput;
import io.zerohop.spark.task.FailureOutcome;
import io.zerohop.spark.task.MapTask;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.util.function.Supplier;
import org.apache.spark.ShuffleDependency;
import org.apache.spark.scheduler.MapStatus;
import org.apache.spark.serializer.Serializer;
import org.apache.spark.shuffle.ShuffleWriter;
import org.apache.spark.util.TaskCompletionListener;
import scala.Option;
import scala.Product2;
import scala.collection.Iterator;

/**
 * Writes the records of one map task. What the dependency's serializer allows decides how records
 * become bytes; see the {@link RecordAppender}s.
 *
 * @param <K> key type
 * @param <V> value type
 * @param <C> combiner type
 */
public final class RowsWriter<K, V, C> extends ShuffleWriter<K, V> {
  private final ShuffleDependency<K, V, C> dependency;
  private final MapTask task;
  private final RowChecksums checksums;
  private final MapOutputBuffer output;
  private final int streamsLimit;
  private long[] partitionLengths;

  /**
   * A writer.
   *
   * @param memory begins a map output in memory; gives null if this executor has none
   * @param writeBufferBytes limit of the arena
   * @param streamsLimit most serialization streams to hold open at a time
   */
  public RowsWriter(
      final ShuffleDependency<K, V, C> dependency,
      final MapTask task,
      final Supplier<MapOutputWriter> memory,
      final MapOutputFiles files,
      final PagePool pages,
      final long writeBufferBytes,
      final int streamsLimit) {
    this.dependency = dependency;
    this.task = task;
    this.streamsLimit = streamsLimit;
    this.checksums = RowChecksums.of(dependency);
    final int partitions = dependency.partitioner().numPartitions();
    this.output =
        new MapOutputBuffer(
            new PartitionArena(pages, partitions, writeBufferBytes),
            new OverflowingOutput(
                dependency.shuffleId(), task.mapId(), partitions, memory.get(), files));
    // Spark stops a writer after exceptions only; errors that an executor survives end up here.
    task.context().addTaskCompletionListener((TaskCompletionListener) ended -> closeOutput());
  }

  @Override
  public void write(final Iterator<Product2<K, V>> records) throws IOException {
    try {
      final long count = appender().appendAll(records);
      partitionLengths = output.commit();
      long bytes = 0;
      for (final long length : partitionLengths) {
        bytes += length;
      }
      task.metrics().incRecordsWritten(count);
      task.metrics().incBytesWritten(bytes);
      task.metrics().incWriteTime(output.packNanos());
      task.context().taskMetrics().incMemoryBytesSpilled(output.spilledBytes());
      task.context().taskMetrics().incDiskBytesSpilled(output.spilledBytes());
    } catch (final ZerohopException e) {
      throw FailureOutcome.raise(e);
    }
  }

  private RecordAppender<K, V> appender() {
    final Serializer serializer = dependency.serializer();
    final UnsafeRows rows = UnsafeRows.of(serializer);
    if (dependency.mapSideCombine()) {
      return new SortedAppender<>(output, dependency, task.context(), checksums);
    }
    if (rows != null) {
      return new UnsafeRowAppender<>(output, dependency.partitioner(), checksums, rows);
    }
    if (serializer.supportsRelocationOfSerializedObjects()) {
      return new RelocatableAppender<>(output, dependency.partitioner(), serializer, checksums);
    }
    if (dependency.partitioner().numPartitions() <= streamsLimit) {
      return new StreamAppender<>(output, dependency.partitioner(), serializer, checksums);
    }
    return new SortedAppender<>(output, dependency, task.context(), checksums);
  }

  @Override
  public Option<MapStatus> stop(final boolean success) {
    closeOutput();
    if (!success || partitionLengths == null) {
      return Option.empty();
    }
    return Option.apply(
        SparkLinks.newMapStatus(
            task.location(), partitionLengths, task.mapId(), checksums.value()));
  }

  private void closeOutput() {
    try {
      output.close();
    } catch (final IOException e) {
      throw new UncheckedIOException(
          "Could not delete a temporary file of map output " + task.mapId(), e);
    }
  }

  @Override
  public long[] getPartitionLengths() {
    return partitionLengths;
  }
}
