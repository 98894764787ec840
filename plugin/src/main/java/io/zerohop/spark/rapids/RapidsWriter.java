package io.zerohop.spark.rapids;

import ai.rapids.cudf.ContiguousTable;
import io.zerohop.device.ZerohopException;
import io.zerohop.shuffle.ShuffleNode;
import io.zerohop.spark.FailureOutcome;
import io.zerohop.spark.SparkLinks;
import io.zerohop.spark.staged.MapOutputFiles;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.ByteBuffer;
import java.time.Duration;
import org.apache.spark.ShuffleDependency;
import org.apache.spark.TaskContext;
import org.apache.spark.scheduler.MapStatus;
import org.apache.spark.shuffle.ShuffleWriteMetricsReporter;
import org.apache.spark.shuffle.ShuffleWriter;
import org.apache.spark.sql.vectorized.ColumnarBatch;
import org.apache.spark.storage.BlockManagerId;
import org.apache.spark.util.TaskCompletionListener;
import scala.Option;
import scala.Product2;
import scala.collection.Iterator;

/**
 * Writes the batches of one map task of RAPIDS. RAPIDS has partitioned a batch into packed tables
 * when it hands them out, one for each partition, and closes all of them when it partitions the
 * next batch; a reference keeps their memory until enough of them can be packed by one launch. The
 * copies are in the order of the task's own stream, as is the freeing of what they read.
 *
 * @param <K> the partition, an Integer
 * @param <V> a ColumnarBatch
 */
public final class RapidsWriter<K, V> extends ShuffleWriter<K, V> {
  private final RapidsClasses rapids = RapidsClasses.get();
  private final ShuffleDependency<K, V, ?> dependency;
  private final long mapId;
  private final TaskContext context;
  private final ShuffleWriteMetricsReporter metrics;
  private final BlockManagerId location;
  private final long packBytes;
  private final TableOutput output;
  private final TableBatch pending;
  private final TaskStream stream;
  private final OffsetBounds bounds;

  /** Null if the map output reports no row checksum. */
  private final RowHash hash;

  private final ExchangeMetrics exchange;
  private final TableSizes sizes;
  private long checksum;
  private long packNanos;
  private long[] partitionLengths;

  /**
   * A writer.
   *
   * @param location what goes into the map status
   * @param rowChecksum whether the map status gets a checksum of the rows
   * @param packBytes how much is packed together
   * @param limit of the copies of one batch
   */
  public RapidsWriter(
      final ShuffleDependency<K, V, ?> dependency,
      final long mapId,
      final TaskContext context,
      final ShuffleWriteMetricsReporter metrics,
      final ShuffleNode node,
      final MapOutputFiles files,
      final BlockManagerId location,
      final boolean rowChecksum,
      final long packBytes,
      final Duration limit) {
    this.dependency = dependency;
    this.mapId = mapId;
    this.context = context;
    this.metrics = metrics;
    this.location = location;
    this.packBytes = packBytes;
    final int partitions = dependency.partitioner().numPartitions();
    this.output = new TableOutput(dependency.shuffleId(), mapId, partitions, node, files, limit);
    this.pending = new TableBatch(partitions);
    this.stream = new TaskStream(node::gpuStream);
    this.bounds = new OffsetBounds(node, stream, limit);
    this.hash =
        rowChecksum
            ? new RowHash(partitions, stream, node::gpuHostBuffer, limit, context.taskAttemptId())
            : null;
    this.exchange = ExchangeMetrics.of(dependency);
    this.sizes = new TableSizes(partitions);
    context.addTaskCompletionListener((TaskCompletionListener) ended -> closeOutput());
  }

  @Override
  public void write(final Iterator<Product2<K, V>> records) throws IOException {
    long rows = 0;
    try {
      while (records.hasNext()) {
        final Product2<K, V> record = records.next();
        final ColumnarBatch batch = (ColumnarBatch) record._2();
        if (batch.numRows() > 0) {
          add((Integer) record._1(), batch);
          rows += batch.numRows();
        }
      }
      flush();
      final long start = System.nanoTime();
      if (hash != null) {
        checksum = hash.value(); // Before anything is published that a failure would leave behind.
      }
      partitionLengths = output.commit();
      packNanos += System.nanoTime() - start;
    } catch (final ZerohopException e) {
      throw FailureOutcome.raise(e);
    }
    long bytes = 0;
    for (final long length : partitionLengths) {
      bytes += length;
    }
    metrics.incRecordsWritten(rows);
    metrics.incBytesWritten(bytes);
    metrics.incWriteTime(packNanos);
    exchange.written(sizes.total());
    context.taskMetrics().incMemoryBytesSpilled(output.deflectedBytes() + output.spilledBytes());
    context.taskMetrics().incDiskBytesSpilled(output.spilledBytes());
  }

  private void add(final int partition, final ColumnarBatch batch) throws IOException {
    if (batch.numCols() == 0) {
      makeRoom(0);
      pending.add(partition, batch.numRows(), new byte[0], null);
      sizes.add(partition, 0);
      return;
    }
    final ContiguousTable table = rapids.packedTable(batch);
    if (table == null) {
      throw new IllegalStateException(
          "RAPIDS handed a batch of "
              + batch.column(0).getClass().getName()
              + " to a GPU shuffle, which Zerohop does not know; set"
              + " spark.zerohop.rapids.enabled=false and report this");
    }
    final long length = table.getBuffer() == null ? 0 : table.getBuffer().getLength();
    makeRoom(length);
    pending.add(
        partition, batch.numRows(), bytes(table.getMetadataDirectBuffer()), table.getBuffer());
    sizes.add(partition, length);
  }

  private void makeRoom(final long length) throws IOException {
    if (!pending.isEmpty() && pending.weight() + length > packBytes) {
      flush();
    }
  }

  private static byte[] bytes(final ByteBuffer metadata) {
    final byte[] bytes = new byte[metadata.remaining()];
    metadata.duplicate().get(bytes);
    return bytes;
  }

  private void flush() throws IOException {
    final long start = System.nanoTime();
    bounds.read(pending);
    if (hash != null) {
      pending.forEach(
          (table, partition) ->
              hash.add(partition, table.rows(), table.metadata(), table.address()));
      hash.launch(); // Behind the wait of the line above: nobody waits for it before the end.
    } else {
      stream.close(); // Idle since that wait; others can use it meanwhile.
    }
    output.append(pending);
    pending.clear();
    packNanos += System.nanoTime() - start;
  }

  @Override
  public Option<MapStatus> stop(final boolean success) {
    closeOutput();
    if (!success || partitionLengths == null) {
      return Option.empty();
    }
    return Option.apply(SparkLinks.newMapStatus(location, sizes.toArray(), mapId, checksum));
  }

  private void closeOutput() {
    try {
      output.close(); // First: copies out of the pending tables may be under way.
    } catch (final IOException e) {
      throw new UncheckedIOException("Could not delete a temporary file of map output " + mapId, e);
    } finally {
      closeStream();
    }
  }

  /** What is under way on the stream ends before the memory that it uses is freed. */
  private void closeStream() {
    stream.close();
    pending.close();
    bounds.close();
    if (hash != null) {
      hash.close();
    }
  }

  @Override
  public long[] getPartitionLengths() {
    return partitionLengths;
  }

  @Override
  public String toString() {
    return "map output " + mapId + " of shuffle " + dependency.shuffleId() + " on the GPU";
  }
}
