package io.zerohop.spark.rapids;

import ai.rapids.cudf.DeviceMemoryBuffer;
import io.zerohop.shuffle.ExtentConsumer;
import io.zerohop.shuffle.PackSource;
import io.zerohop.spark.rapids.TableHeader.PackedTable;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;
import org.apache.spark.unsafe.Platform;

/**
 * Tables of one map task that wait to be packed together, partition by partition. Holds a reference
 * on each table's memory until {@link #clear}. Belongs to one task's thread.
 */
final class TableBatch implements AutoCloseable {
  /** What one extent can say of its length. */
  private static final int MOST_CHUNK_BYTES = 1 << 30;

  private final int partitions;
  private final List<List<PackedTable>> tables;
  private final List<List<DeviceMemoryBuffer>> buffers;
  private final List<Integer> used = new ArrayList<>();
  private long bytes;
  private long headers;

  TableBatch(final int partitions) {
    this.partitions = partitions;
    tables = new ArrayList<>(partitions);
    buffers = new ArrayList<>(partitions);
    for (int i = 0; i < partitions; i++) {
      tables.add(null);
      buffers.add(null);
    }
  }

  int partitions() {
    return partitions;
  }

  /** Bytes of the tables on the GPU. */
  long bytes() {
    return bytes;
  }

  boolean isEmpty() {
    return used.isEmpty();
  }

  /**
   * Adds a table.
   *
   * @param buffer a reference is taken; null if the table has no bytes
   */
  void add(
      final int partition, final int rows, final byte[] metadata, final DeviceMemoryBuffer buffer) {
    if (tables.get(partition) == null) {
      tables.set(partition, new ArrayList<>(1));
      buffers.set(partition, new ArrayList<>(1));
      used.add(partition);
    }
    final long length = buffer == null ? 0 : buffer.getLength();
    if (length > 0) {
      buffer.incRefCount();
      buffers.get(partition).add(buffer);
    }
    tables.get(partition).add(new PackedTable(rows, metadata, length));
    bytes += length;
  }

  /** Writes the header of a partition's tables to a fresh array; empty if it has none. */
  byte[] header(final int partition) {
    final List<PackedTable> of = tables.get(partition);
    if (of == null) {
      return new byte[0];
    }
    final byte[] header = new byte[TableHeader.bytes(of)];
    TableHeader.write(of, ByteBuffer.wrap(header));
    return header;
  }

  /** The headers of all partitions, in memory that is freed by {@link #clear}. */
  PackSource headers() {
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
    return new Source(false) {
      @Override
      public void forEachChunk(final int partition, final ExtentConsumer consumer) {
        if (lengths[partition] > 0) {
          consumer.extent(starts[partition], lengths[partition]);
        }
      }
    };
  }

  /** The bytes of all tables, where they lie on the GPU. */
  PackSource payload() {
    return new Source(true) {
      @Override
      public void forEachChunk(final int partition, final ExtentConsumer consumer) {
        if (buffers.get(partition) != null) {
          buffers.get(partition).forEach(buffer -> chunks(buffer, consumer));
        }
      }
    };
  }

  private static void chunks(final DeviceMemoryBuffer buffer, final ExtentConsumer consumer) {
    final long length = buffer.getLength();
    for (long at = 0; at < length; at += MOST_CHUNK_BYTES) {
      consumer.extent(buffer.getAddress() + at, (int) Math.min(MOST_CHUNK_BYTES, length - at));
    }
  }

  private void freeHeaders() {
    if (headers != 0) {
      Platform.freeMemory(headers);
      headers = 0;
    }
  }

  /** Forgets all tables and gives their memory back, in the order of this thread's stream. */
  void clear() {
    freeHeaders();
    for (final int partition : used) {
      buffers.get(partition).forEach(DeviceMemoryBuffer::close);
      buffers.set(partition, null);
      tables.set(partition, null);
    }
    used.clear();
    bytes = 0;
  }

  @Override
  public void close() {
    clear();
  }

  private abstract class Source implements PackSource {
    private final boolean onDevice;

    Source(final boolean onDevice) {
      this.onDevice = onDevice;
    }

    @Override
    public int partitions() {
      return partitions;
    }

    @Override
    public boolean onDevice() {
      return onDevice;
    }
  }
}
