package io.zerohop.spark.rapids.write;

import ai.rapids.cudf.DeviceMemoryBuffer;
import io.zerohop.device.BlockChecksums;
import io.zerohop.device.CopyStream;
import io.zerohop.device.Crc32c;
import io.zerohop.shuffle.extent.ExtentList.ExtentConsumer;
import io.zerohop.shuffle.write.MapOutput.PackSource;
import io.zerohop.spark.rapids.format.TableHeader;
import io.zerohop.spark.rapids.format.TableHeader.PackedTable;
import io.zerohop.spark.rapids.write.TableSink.OutputBatch;
import java.nio.ByteBuffer;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import java.util.function.ObjIntConsumer;
import org.apache.spark.unsafe.Platform;
import org.jspecify.annotations.Nullable;

/**
 * Tables of one map task that wait to be packed together, by partition. Holds a reference on each
 * table's memory until {@link #clear}. Belongs to one task's thread.
 */
public final class TableBatch implements OutputBatch, AutoCloseable {
  private static final long BYTES_PER_TABLE = 1024;

  private final int partitions;
  private final List<List<Pending>> tables;
  private final List<Integer> used = new ArrayList<>();
  private long bytes;
  private long tableCount;
  private long headers;

  /** CRC32C of what each partition's tables have on the GPU; absent if it is not known. */
  private int @Nullable [] checksums;

  /** A table whose header is not complete until its offsets are read. */
  static final class Pending {
    private final int rows;
    private final byte[] metadata;

    /** Absent if the table has no bytes. */
    private final @Nullable DeviceMemoryBuffer buffer;

    private int[] bounds = {};

    private Pending(
        final int rows, final byte[] metadata, final @Nullable DeviceMemoryBuffer buffer) {
      this.rows = rows;
      this.metadata = metadata;
      this.buffer = buffer;
    }

    int rows() {
      return rows;
    }

    byte[] metadata() {
      return metadata;
    }

    /** Where its bytes lie on the GPU; 0 if it has none. */
    long address() {
      return buffer == null ? 0 : buffer.getAddress();
    }

    long bytes() {
      return buffer == null ? 0 : buffer.getLength();
    }

    /** The first and last offset of each column that has some. */
    void bounds(final int[] read) {
      bounds = read;
    }

    private PackedTable table() {
      return new PackedTable(rows, metadata, bytes(), bounds);
    }
  }

  public TableBatch(final int partitions) {
    this.partitions = partitions;
    tables = new ArrayList<>(partitions);
    for (int i = 0; i < partitions; i++) {
      tables.add(null);
    }
  }

  @Override
  public long bytes() {
    return bytes;
  }

  /** What the tables cost in memory, of the GPU and the heap together; small ones cost more. */
  public long weight() {
    return bytes + tableCount * BYTES_PER_TABLE;
  }

  @Override
  public boolean isEmpty() {
    return used.isEmpty();
  }

  /**
   * Adds a table.
   *
   * @param buffer a reference is taken; absent if the table has no bytes
   */
  public void add(
      final int partition,
      final int rows,
      final byte[] metadata,
      final @Nullable DeviceMemoryBuffer buffer) {
    if (tables.get(partition) == null) {
      tables.set(partition, new ArrayList<>(1));
      used.add(partition);
    }
    final DeviceMemoryBuffer held = buffer != null && buffer.getLength() > 0 ? buffer : null;
    if (held != null) {
      held.incRefCount();
      bytes += held.getLength();
    }
    tableCount++;
    tables.get(partition).add(new Pending(rows, metadata, held));
  }

  /**
   * Has the GPU sum up the tables, and waits for it.
   *
   * @param by the thread's stream
   * @param limit of that
   */
  void sumUp(final CopyStream by, final Duration limit) {
    final long[] addresses = new long[Math.toIntExact(tableCount)];
    final long[] lengths = new long[addresses.length];
    final int[] next = {0};
    forEach(
        (table, partition) -> {
          addresses[next[0]] = table.address();
          lengths[next[0]++] = table.bytes();
        });
    final int[] ofTables = BlockChecksums.of(by, addresses, lengths, limit);
    final int[] sums = new int[partitions];
    next[0] = 0;
    forEach(
        (table, partition) -> {
          sums[partition] = Crc32c.join(sums[partition], ofTables[next[0]++], (int) table.bytes());
        });
    checksums = sums;
  }

  /** Gives every table, with its partition. */
  void forEach(final ObjIntConsumer<Pending> consumer) {
    for (final int partition : used) {
      tables.get(partition).forEach(table -> consumer.accept(table, partition));
    }
  }

  @Override
  public long[] layOut(final long first, final Placing placing) {
    final long[] starts = new long[partitions + 1];
    long at = first;
    for (int partition = 0; partition < partitions; partition++) {
      starts[partition] = at;
      if (tables.get(partition) != null) {
        for (final Pending table : tables.get(partition)) {
          if (table.buffer != null) {
            placing.place(table.buffer, 0, at, table.bytes());
            at += table.bytes();
          }
        }
      }
    }
    starts[partitions] = at;
    return starts;
  }

  /** The header of a partition's tables, in a fresh array. */
  private byte[] header(final int partition) {
    if (tables.get(partition) == null) {
      return new byte[0];
    }
    final List<PackedTable> of = tables.get(partition).stream().map(Pending::table).toList();
    final byte[] header = new byte[TableHeader.bytes(of)];
    TableHeader.write(of, ByteBuffer.wrap(header));
    return header;
  }

  /** The headers of all partitions, in memory that is freed by {@link #clear}. */
  @Override
  public PackSource headers() {
    freeHeaders();
    final byte[][] encoded = new byte[partitions][];
    long total = 0;
    for (int partition = 0; partition < partitions; partition++) {
      encoded[partition] = header(partition);
      total += encoded[partition].length;
    }
    headers = Platform.allocateMemory(Math.max(1, total));
    final long[] starts = new long[partitions];
    final int[] lengths = new int[partitions];
    long at = headers;
    for (int partition = 0; partition < partitions; partition++) {
      final byte[] header = encoded[partition];
      Platform.copyMemory(header, Platform.BYTE_ARRAY_OFFSET, null, at, header.length);
      starts[partition] = at;
      lengths[partition] = header.length;
      at += header.length;
    }
    return new PackSource() {
      @Override
      public int partitions() {
        return partitions;
      }

      @Override
      public void forEachChunk(final int partition, final ExtentConsumer consumer) {
        if (lengths[partition] > 0) {
          consumer.extent(starts[partition], lengths[partition]);
        }
      }
    };
  }

  @Override
  public int partitions() {
    return partitions;
  }

  @Override
  public boolean hasChecksums() {
    return checksums != null;
  }

  @Override
  public int checksum(final int partition) {
    return Objects.requireNonNull(checksums, "hasChecksums")[partition];
  }

  @Override
  public void forEachChunk(final int partition, final ExtentConsumer consumer) {
    if (tables.get(partition) != null) {
      for (final Pending table : tables.get(partition)) {
        if (table.buffer != null) {
          consumer.extents(table.address(), table.bytes());
        }
      }
    }
  }

  private void freeHeaders() {
    if (headers != 0) {
      Platform.freeMemory(headers);
      headers = 0;
    }
  }

  /** Forgets all tables and gives their memory back, in the order of this thread's stream. */
  public void clear() {
    freeHeaders();
    for (final int partition : used) {
      for (final Pending table : tables.set(partition, null)) {
        if (table.buffer != null) {
          table.buffer.close();
        }
      }
    }
    used.clear();
    checksums = null;
    bytes = 0;
    tableCount = 0;
  }

  @Override
  public void close() {
    clear();
  }

  /**
   * The sizes in a map status of a GPU shuffle: the bytes of each partition's tables, counted as by
   * RAPIDS' caching manager. Headers do not count: adaptive execution coalesces partitions by these
   * sizes, and with a few rows in each the headers would outweigh the rows and lead to other plans
   * than RAPIDS' own manager. Used by one task's thread.
   */
  public static final class TableSizes {
    /**
     * What rows without bytes count (no columns, or structs without members), so that readers ask
     * for them. RAPIDS has the same number.
     */
    static final long WITHOUT_BYTES = 100;

    private final long[] sizes;
    private long total;

    public TableSizes(final int partitions) {
      sizes = new long[partitions];
    }

    /** Adds a table that has rows. */
    public void add(final int partition, final long bytes) {
      sizes[partition] += bytes == 0 ? WITHOUT_BYTES : bytes;
      total += bytes;
    }

    /** Bytes of all tables. */
    public long total() {
      return total;
    }

    /** By partition; 0 where there are no rows. */
    public long[] toArray() {
      return sizes.clone();
    }
  }
}
