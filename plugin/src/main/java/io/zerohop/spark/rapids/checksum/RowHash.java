package io.zerohop.spark.rapids.checksum;

import ai.rapids.cudf.ColumnVector;
import io.zerohop.device.HashMix;
import io.zerohop.device.HostBuffer;
import io.zerohop.device.RowHashBatch;
import io.zerohop.spark.log.SparkCode;
import io.zerohop.spark.rapids.api.TaskStream;
import io.zerohop.spark.rapids.format.PackedColumns;
import java.time.Duration;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.function.LongFunction;
import org.apache.spark.unsafe.Platform;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The row checksum of one map output: a number that is the same whenever the same rows go to the
 * same partitions, in whatever order and however they are cut into tables. The GPU sums up hashes
 * of rows, a launch for each batch, in the order of the task's own stream and beside what the task
 * does meanwhile; only {@link #value} waits. Takes neither RMM's memory nor the GPU semaphore.
 *
 * <p>For one task's thread; owns its pinned memory.
 */
public final class RowHash implements AutoCloseable {
  private static final Logger LOG = LoggerFactory.getLogger(RowHash.class);
  private static final AtomicBoolean SAID_UNKNOWN = new AtomicBoolean();
  private static final int BUFFER_BYTES = 256 << 10;

  /** The hash of a row without columns. */
  private static final long NO_COLUMNS = HashMix.mix(RowHashBatch.ROW);

  private final TaskStream stream;
  private final LongFunction<HostBuffer> buffers;
  private final Duration limit;
  private final long attempt;
  private final long[] sums;
  private RowHashBatch batch;
  private boolean known = true;

  /** Sums of chunks that the GPU writes, and the partitions that they belong to. */
  private HostBuffer results;

  private int[] partitions = {};
  private int waiting;

  /**
   * A checksum of no rows.
   *
   * @param stream which is closed before this
   * @param buffers gives pinned memory of at least so many bytes
   * @param limit of the wait for everything
   * @param attempt a number that no other attempt at this map task has
   */
  public RowHash(
      final int partitions,
      final TaskStream stream,
      final LongFunction<HostBuffer> buffers,
      final Duration limit,
      final long attempt) {
    this.sums = new long[partitions];
    this.stream = stream;
    this.buffers = buffers;
    this.limit = limit;
    this.attempt = attempt;
  }

  /**
   * Adds a table to the next launch.
   *
   * @param metadata cudf's; empty if the table has no columns
   * @param address of its bytes, which stay until the launch that follows has ended
   */
  public void add(final int partition, final int rows, final byte[] metadata, final long address) {
    if (metadata.length == 0) {
      sums[partition] += rows * NO_COLUMNS;
      return;
    }
    if (!known) {
      return;
    }
    if (batch == null) {
      batch = stream.get().newRowHash();
    }
    final PackedColumns columns = PackedColumns.parse(metadata);
    if (columns == null || !HashedTable.add(columns, address, partition, batch)) {
      known = false;
      batch.clear();
      sayUnknown("a packed table with " + metadata.length + " bytes of metadata");
    }
  }

  /**
   * Adds the partitions of a table to the next launch.
   *
   * @param columns of the table, its rows ordered by partition; they stay until the launch that
   *     follows has ended
   * @param firstRows first row of each partition, and the number of all rows
   */
  public void add(final ColumnVector[] columns, final int[] firstRows) {
    if (!known) {
      return;
    }
    if (batch == null) {
      batch = stream.get().newRowHash();
    }
    if (!HashedColumns.add(columns, firstRows, batch)) {
      known = false;
      batch.clear();
      sayUnknown("a batch of " + columns.length + " columns");
    }
  }

  private static void sayUnknown(final String table) {
    if (!SAID_UNKNOWN.getAndSet(true)) {
      SparkCode.ROWS_NOT_HASHED.warn(
          LOG,
          "Zerohop does not know the layout of {}, so its rows have no checksum. If Spark computes"
              + " such a map output again, it treats it as a different one and runs its consumers"
              + " again; see docs/rapids.md",
          table);
    }
  }

  /** Has the GPU hash what was added. Tables may be freed behind it, in the order of the stream. */
  public void launch() {
    if (batch == null || batch.isEmpty()) {
      return;
    }
    final int count = batch.results();
    makeRoom(count);
    stream.get().submit(batch, results.address() + (long) Long.BYTES * waiting);
    for (int i = 0; i < count; i++) {
      partitions[waiting + i] = batch.slot(i);
    }
    waiting += count;
    batch.clear();
  }

  private void makeRoom(final int count) {
    if (waiting + count <= partitions.length) {
      return;
    }
    collect();
    if (count > partitions.length) {
      freeResults();
      results = buffers.apply(Math.max(BUFFER_BYTES, (long) Long.BYTES * count));
      partitions = new int[(int) (results.bytes() / Long.BYTES)];
    }
  }

  /** Waits for the launches so far and adds their sums. */
  private void collect() {
    if (waiting == 0) {
      return;
    }
    stream.get().synchronize(limit);
    for (int i = 0; i < waiting; i++) {
      sums[partitions[i]] += Platform.getLong(null, results.address() + (long) Long.BYTES * i);
    }
    waiting = 0;
  }

  /**
   * Waits for the launches, and gives the checksum of everything that was added; never 0, which
   * stands for none. Where tables are not known it is a number of this attempt: Spark has been told
   * to rely on it, and running consumers again for nothing is better than mixing different rows.
   */
  public long value() {
    collect();
    if (!known) {
      return unknown(attempt);
    }
    long hash = sums.length;
    for (final long sum : sums) {
      hash = HashMix.combine(hash, sum);
    }
    return notZero(hash);
  }

  /** The checksum of an attempt whose rows have none. */
  public static long unknown(final long attempt) {
    return notZero(HashMix.mix(attempt));
  }

  private static long notZero(final long hash) {
    return hash == 0 ? 1 : hash;
  }

  /** Frees what the launches write to; none may be under way. */
  @Override
  public void close() {
    freeResults();
  }

  private void freeResults() {
    partitions = new int[0];
    if (results != null) {
      results.close();
      results = null;
    }
  }
}
