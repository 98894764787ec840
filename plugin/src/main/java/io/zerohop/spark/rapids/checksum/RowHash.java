package io.zerohop.spark.rapids.checksum;

import ai.rapids.cudf.BaseDeviceMemoryBuffer;
import ai.rapids.cudf.ColumnVector;
import ai.rapids.cudf.ColumnView;
import ai.rapids.cudf.DType;
import com.nvidia.spark.rapids.ShimLoader;
import io.zerohop.device.HostBuffer;
import io.zerohop.device.RowHashBatch;
import io.zerohop.device.RowHashBatch.HashMix;
import io.zerohop.spark.log.SparkCode;
import io.zerohop.spark.rapids.api.RapidsClasses;
import io.zerohop.spark.rapids.api.RapidsMember;
import io.zerohop.spark.rapids.api.TaskStream;
import io.zerohop.spark.rapids.format.PackedColumns;
import java.lang.invoke.MethodHandle;
import java.time.Duration;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.function.LongFunction;
import org.apache.spark.unsafe.Platform;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The row checksum of one map output: the same number whenever the same rows go to the same
 * partitions, in any order and any division into tables. The GPU sums up hashes of rows, a launch
 * for each batch, in the order of the task's own stream and beside what the task does meanwhile;
 * only {@link #value} waits. Takes neither RMM's memory nor the GPU semaphore.
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

  /** Absent before the first table. */
  private @Nullable RowHashBatch batch;

  private boolean known = true;

  /** Sums of chunks that the GPU writes, if there is room for any; their partitions are below. */
  private @Nullable HostBuffer results;

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
      batch = new RowHashBatch();
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
      batch = new RowHashBatch();
    }
    if (!HashedColumns.add(columns, firstRows, batch)) {
      known = false;
      batch.clear();
      sayUnknown("a batch of " + columns.length + " columns");
    }
  }

  private static void sayUnknown(final String table) {
    if (!SAID_UNKNOWN.getAndSet(true)) {
      SparkCode.ROWS_NOT_HASHED
          .says(
              "Zerohop does not know the layout of a table, so its rows have no checksum; if Spark"
                  + " computes such a map output again, it runs its consumers again, too")
          .at(String.valueOf(table))
          .remedy("see docs/rapids.md")
          .warn(LOG);
    }
  }

  /** Has the GPU hash what was added. Tables may be freed behind it, in the order of the stream. */
  public void launch() {
    final RowHashBatch next = batch;
    if (next == null || next.isEmpty()) {
      return;
    }
    final int count = next.results();
    final HostBuffer room = makeRoom(count);
    stream.get().submit(next, room.address() + (long) Long.BYTES * waiting);
    for (int i = 0; i < count; i++) {
      partitions[waiting + i] = next.slot(i);
    }
    waiting += count;
    next.clear();
  }

  private HostBuffer makeRoom(final int count) {
    HostBuffer room = results;
    if (room != null && waiting + count <= partitions.length) {
      return room;
    }
    collect();
    if (room == null || count > partitions.length) {
      freeResults();
      room = buffers.apply(Math.max(BUFFER_BYTES, (long) Long.BYTES * count));
      results = room;
      partitions = new int[(int) (room.bytes() / Long.BYTES)];
    }
    return room;
  }

  /** Waits for the launches so far and adds their sums. */
  private void collect() {
    final HostBuffer from = results;
    if (from == null || waiting == 0) {
      return;
    }
    stream.synchronize(limit);
    for (int i = 0; i < waiting; i++) {
      sums[partitions[i]] += Platform.getLong(null, from.address() + (long) Long.BYTES * i);
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

  /**
   * Tells a device where plain columns of cudf lie, so that it can hash the rows of each partition.
   * A row has the hash that it has in a packed table ({@link HashedTable}). Takes no memory of the
   * GPU and waits for nothing. Columns begin with their first row: cudf's owned columns have no
   * offset.
   */
  private static final class HashedColumns {
    private final RowHashBatch batch;
    private int added;

    private HashedColumns(final RowHashBatch batch) {
      this.batch = batch;
    }

    /**
     * Binds cudf's own method, since the public one waits for the GPU to count a string's bytes.
     */
    private static final class DataAddress {
      static final MethodHandle OF = bind();

      private static MethodHandle bind() {
        try {
          return RapidsMember.COLUMN_DATA.bind(ShimLoader.getShimClassLoader());
        } catch (final ReflectiveOperationException e) {
          throw new IllegalStateException(
              "this RAPIDS Accelerator lacks " + RapidsMember.COLUMN_DATA.signature(), e);
        }
      }
    }

    /**
     * Adds the partitions of a table, each with its number as slot.
     *
     * @param columns their rows are ordered by partition
     * @param firstRows first row of each partition, and the number of all rows
     * @return whether all columns are of known kinds; if not, the batch can only be cleared
     */
    static boolean add(
        final ColumnVector[] columns, final int[] firstRows, final RowHashBatch batch) {
      batch.beginTable(firstRows[1] - firstRows[0], columns.length, 0);
      final HashedColumns table = new HashedColumns(batch);
      for (final ColumnVector column : columns) {
        if (!table.column(column, 0)) {
          return false;
        }
      }
      for (int partition = 1; partition < firstRows.length - 1; partition++) {
        final int rows = firstRows[partition + 1] - firstRows[partition];
        if (rows > 0) {
          batch.addRows(firstRows[partition], rows, partition);
        }
      }
      return true;
    }

    private boolean column(final ColumnView column, final int depth) {
      if (added == RowHashBatch.MAX_COLUMNS) {
        return false;
      }
      added++;
      if (column.getRowCount() == 0) {
        batch.addFixed(1, 0, 0); // Items of empty lists: no row refers to them.
        return true;
      }
      final long mask = address(column.getValid());
      final DType type = column.getType();
      if (type.equals(DType.STRING)) {
        batch.addString(data(column), address(column.getOffsets()), mask);
        return true;
      }
      if (!type.isNestedType()) {
        final int width = type.getSizeInBytes();
        final long data = data(column);
        if (Integer.bitCount(width) != 1 || width > 16 || data == 0) {
          return false;
        }
        batch.addFixed(width, data, mask);
        return true;
      }
      if (depth == RowHashBatch.MAX_DEPTH) {
        return false;
      }
      if (type.equals(DType.LIST)) {
        batch.beginList(address(column.getOffsets()), mask);
      } else {
        batch.beginStruct(column.getNumChildren(), mask);
      }
      return children(column, depth + 1);
    }

    private boolean children(final ColumnView column, final int depth) {
      for (int i = 0; i < column.getNumChildren(); i++) {
        try (ColumnView child = column.getChildColumnView(i)) {
          if (!column(child, depth)) {
            return false;
          }
        }
      }
      return true;
    }

    /** Where the values or characters lie; 0 if there are none. */
    private static long data(final ColumnView column) {
      try {
        return (long) DataAddress.OF.invokeExact(column.getNativeView());
      } catch (final Throwable e) {
        throw RapidsClasses.rethrow(e);
      }
    }

    private static long address(final BaseDeviceMemoryBuffer buffer) {
      return buffer == null ? 0 : buffer.getAddress();
    }
  }

  /**
   * Describes the columns of one packed table to a device that hashes their rows. What a column is
   * made of decides, not how cudf has laid it out: a table without any item in its lists hashes as
   * one that has some.
   */
  private static final class HashedTable {
    private final PackedColumns columns;
    private final long address;
    private final RowHashBatch batch;

    private HashedTable(final PackedColumns columns, final long address, final RowHashBatch batch) {
      this.columns = columns;
      this.address = address;
      this.batch = batch;
    }

    /**
     * Adds a table.
     *
     * @param address where its bytes lie
     * @return whether its columns are of kinds that are known; if not, the batch can only be
     *     cleared
     */
    static boolean add(
        final PackedColumns columns, final long address, final int slot, final RowHashBatch batch) {
      if (columns.entries() > RowHashBatch.MAX_COLUMNS) {
        return false;
      }
      batch.beginTable(columns.rows(0), columns.columns(), slot);
      return new HashedTable(columns, address, batch).all(0, columns.columns(), 0);
    }

    /** Columns beside each other. */
    private boolean all(final int first, final int count, final int depth) {
      int entry = first;
      for (int i = 0; i < count; i++) {
        if (!column(entry, depth)) {
          return false;
        }
        entry = columns.end(entry);
      }
      return true;
    }

    private boolean column(final int entry, final int depth) {
      if (columns.rows(entry) == 0) {
        batch.addFixed(1, 0, 0); // Below lists without items: nobody comes here.
        return true;
      }
      final int nulls = columns.nulls(entry);
      final long mask = nulls == 0 ? 0 : at(columns.mask(entry));
      final boolean within = depth < RowHashBatch.MAX_DEPTH;
      if (nulls > 0 && mask == 0) {
        return false;
      }
      return switch (columns.type(entry)) {
        case PackedColumns.STRING -> strings(entry, mask);
        case PackedColumns.LIST -> within && lists(entry, mask, depth);
        case PackedColumns.STRUCT -> {
          if (within) {
            batch.beginStruct(columns.children(entry), mask);
          }
          yield within && all(entry + 1, columns.children(entry), depth + 1);
        }
        default -> values(entry, mask);
      };
    }

    /** An address; 0 if there is none. */
    private long at(final long offset) {
      return offset < 0 ? 0 : address + offset;
    }

    private boolean values(final int entry, final long mask) {
      final int width = PackedColumns.width(columns.type(entry));
      if (width == 0 || columns.children(entry) != 0 || columns.data(entry) < 0) {
        return false;
      }
      batch.addFixed(width, at(columns.data(entry)), mask);
      return true;
    }

    private boolean strings(final int entry, final long mask) {
      if (columns.boundIndex(entry) < 0) {
        return false;
      }
      batch.addString(at(columns.data(entry)), at(columns.data(entry + 1)), mask);
      return true;
    }

    private boolean lists(final int entry, final long mask, final int depth) {
      if (columns.boundIndex(entry) < 0) {
        return false;
      }
      batch.beginList(at(columns.data(entry + 1)), mask);
      return column(columns.end(entry + 1), depth + 1);
    }
  }
}
