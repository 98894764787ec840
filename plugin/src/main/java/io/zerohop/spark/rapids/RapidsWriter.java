package io.zerohop.spark.rapids;

import ai.rapids.cudf.ContiguousTable;
import io.zerohop.device.Message;
import io.zerohop.device.ZerohopException;
import io.zerohop.shuffle.ShuffleNode;
import io.zerohop.shuffle.write.MapOutput;
import io.zerohop.spark.compat.SparkLinks;
import io.zerohop.spark.log.UnusableException;
import io.zerohop.spark.rapids.api.ExchangeMetrics;
import io.zerohop.spark.rapids.api.RapidsClasses;
import io.zerohop.spark.rapids.write.KudoBatch;
import io.zerohop.spark.rapids.write.TableBatch;
import io.zerohop.spark.rapids.write.TableBatch.TableSizes;
import io.zerohop.spark.rapids.write.TableSink;
import io.zerohop.spark.task.FailureOutcome;
import io.zerohop.spark.task.MapTask;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.time.Duration;
import java.util.function.Supplier;
import org.apache.spark.ShuffleDependency;
import org.apache.spark.scheduler.MapStatus;
import org.apache.spark.shuffle.ShuffleWriter;
import org.apache.spark.sql.vectorized.ColumnarBatch;
import org.apache.spark.util.TaskCompletionListener;
import org.jspecify.annotations.Nullable;
import scala.Option;
import scala.Product2;
import scala.collection.Iterator;

/**
 * Writes the batches of one map task of RAPIDS. RAPIDS has partitioned a batch when it hands it
 * out: as one batch of blocks ({@link KudoBatch}), which is packed at once, or as packed tables,
 * one for each partition. It closes these when it partitions the next batch; a reference keeps
 * their memory until enough of them can be packed by one launch.
 *
 * @param <K> the partition, an Integer
 * @param <V> a ColumnarBatch
 */
public final class RapidsWriter<K, V> extends ShuffleWriter<K, V> {
  private final RapidsClasses rapids = RapidsClasses.get();
  private final ShuffleDependency<K, V, ?> dependency;
  private final MapTask task;
  private final long packBytes;
  private final TableSink sink;
  private final TableBatch pending;
  private final ExchangeMetrics exchange;
  private final TableSizes sizes;

  /** What RAPIDS closes when it goes on, and not if the task ends here. */
  private @Nullable KudoBatch last;

  private long checksum;
  private long packNanos;

  /** Absent until the output is committed. */
  private long @Nullable [] partitionLengths;

  private boolean closed;

  /**
   * A writer.
   *
   * @param output begins the map output, for this to close
   * @param gpu this executor's node, if it has a GPU; absent if RAPIDS alone uses the GPU
   * @param limit of the copies of one batch on the GPU
   * @param rowChecksum whether the map status gets a checksum of the rows
   * @param packBytes how much is packed together
   */
  public RapidsWriter(
      final ShuffleDependency<K, V, ?> dependency,
      final MapTask task,
      final Supplier<MapOutput> output,
      final @Nullable ShuffleNode gpu,
      final Duration limit,
      final boolean rowChecksum,
      final long packBytes) {
    this.dependency = dependency;
    this.task = task;
    this.packBytes = packBytes;
    final int partitions = dependency.partitioner().numPartitions();
    this.sink =
        TableSink.begin(
            output.get(), gpu, limit, partitions, rowChecksum, task.context().taskAttemptId());
    this.pending = new TableBatch(partitions);
    this.exchange = ExchangeMetrics.of(dependency);
    this.sizes = new TableSizes(partitions);
    task.context().addTaskCompletionListener((TaskCompletionListener) ended -> closeSink());
  }

  @Override
  public void write(final Iterator<Product2<K, V>> records) throws IOException {
    try {
      writeAll(records);
    } catch (final Throwable e) { // Also Spark's checked ones, which Scala does not declare.
      closeAfter(e);
      if (e instanceof ZerohopException failure) {
        throw FailureOutcome.raise(failure);
      }
      throw e;
    }
  }

  private void writeAll(final Iterator<Product2<K, V>> records) throws IOException {
    long rows = 0;
    while (records.hasNext()) {
      final Product2<K, V> record = records.next();
      final ColumnarBatch batch = (ColumnarBatch) record._2();
      if (batch instanceof KudoBatch kudo) {
        add(kudo);
        rows += batch.numRows();
      } else if (batch.numRows() > 0) {
        add((Integer) record._1(), batch);
        rows += batch.numRows();
      }
    }
    flush();
    final long start = System.nanoTime();
    checksum = sink.checksum(); // Before anything is published that a failure would leave behind.
    final long[] lengths = sink.output().commit();
    partitionLengths = lengths;
    packNanos += System.nanoTime() - start;
    long bytes = 0;
    for (final long length : lengths) {
      bytes += length;
    }
    task.metrics().incRecordsWritten(rows);
    task.metrics().incBytesWritten(bytes);
    task.metrics().incWriteTime(packNanos);
    exchange.written(sizes.total());
    task.context()
        .taskMetrics()
        .incMemoryBytesSpilled(sink.output().overflowedBytes() + sink.output().spilledBytes());
    task.context().taskMetrics().incDiskBytesSpilled(sink.output().spilledBytes());
  }

  /** Packs a batch that is split already, behind what waits, to keep the order of the rows. */
  private void add(final KudoBatch batch) throws IOException {
    last = batch;
    if (!pending.isEmpty()) {
      flush();
    }
    final long start = System.nanoTime();
    sink.append(batch, packBytes);
    batch.addSizes(sizes);
    packNanos += System.nanoTime() - start;
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
      throw new UnusableException(
          Message.of(
                  "RAPIDS handed a batch of an unknown class to a GPU shuffle: "
                      + batch.column(0).getClass().getName())
              .remedy("set spark.zerohop.rapids.enabled=false and report this"));
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
    sink.append(pending);
    pending.clear();
    packNanos += System.nanoTime() - start;
  }

  @Override
  public Option<MapStatus> stop(final boolean success) {
    closeSink();
    if (!success || partitionLengths == null) {
      return Option.empty();
    }
    return Option.apply(
        SparkLinks.newMapStatus(task.location(), sizes.toArray(), task.mapId(), checksum));
  }

  /**
   * Closes the sink of a task that fails. Done here and not in {@link #stop}: of that Spark only
   * logs what it throws, and does not end the executor.
   *
   * @throws Error if the executor cannot go on
   */
  private void closeAfter(final Throwable failure) {
    try {
      closeSink();
    } catch (final Error e) {
      if (e != failure) {
        e.addSuppressed(failure);
      }
      throw e;
    } catch (final RuntimeException e) {
      if (e != failure) {
        failure.addSuppressed(e);
      }
    }
  }

  private void closeSink() {
    if (closed) {
      return;
    }
    closed = true;
    try {
      sink.close();
    } catch (final ZerohopException e) {
      throw FailureOutcome.raise(e);
    }
    pending.close(); // Not if copies out of it do not end.
    if (last != null) {
      last.close();
    }
  }

  @Override
  public long @Nullable [] getPartitionLengths() {
    return partitionLengths;
  }

  @Override
  public String toString() {
    return "map output " + task.mapId() + " of shuffle " + dependency.shuffleId() + " on the GPU";
  }
}
