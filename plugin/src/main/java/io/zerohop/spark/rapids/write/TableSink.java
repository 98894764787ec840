package io.zerohop.spark.rapids.write;

import ai.rapids.cudf.DeviceMemoryBuffer;
import ai.rapids.cudf.HostMemoryBuffer;
import io.zerohop.device.CopyBatch;
import io.zerohop.device.HostBuffer;
import io.zerohop.shuffle.ShuffleNode;
import io.zerohop.shuffle.extent.ExtentList.ExtentConsumer;
import io.zerohop.shuffle.write.MapOutput;
import io.zerohop.shuffle.write.MapOutput.PackSource;
import io.zerohop.spark.rapids.api.RapidsClasses;
import io.zerohop.spark.rapids.api.TaskStream;
import io.zerohop.spark.rapids.checksum.RowHash;
import io.zerohop.spark.rapids.format.PackedColumns;
import io.zerohop.spark.rapids.write.KudoBatch.KudoSlice;
import java.io.IOException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import org.apache.spark.unsafe.Platform;
import org.jspecify.annotations.Nullable;

/**
 * The target of one map task's tables. All executors of an application store the same bytes, so
 * each can read what any other has written. Belongs to the task's thread; {@link #close} frees what
 * was not committed.
 */
public abstract sealed class TableSink implements AutoCloseable {
  private final MapOutput output;

  /**
   * @param output owned from now on
   */
  TableSink(final MapOutput output) {
    this.output = output;
  }

  /**
   * Begins the tables of one map task.
   *
   * @param output owned from now on
   * @param gpu the node in whose GPU memory they are packed; absent if cudf copies them to the host
   * @param limit of the copies of one batch on the GPU
   * @param rowChecksum whether {@link #checksum} will be asked for
   * @param attempt a number that no other attempt at this map task has
   */
  public static TableSink begin(
      final MapOutput output,
      final @Nullable ShuffleNode gpu,
      final Duration limit,
      final int partitions,
      final boolean rowChecksum,
      final long attempt) {
    return gpu == null
        ? new HostSink(output, rowChecksum ? RowHash.unknown(attempt) : 0)
        : new DeviceSink(gpu, output, partitions, rowChecksum, attempt, limit);
  }

  /** Takes a batch, which may be cleared when this returns. */
  public abstract void append(OutputBatch batch) throws IOException;

  /**
   * Takes a batch that is split already, in slices.
   *
   * @param sliceBytes the most bytes of a slice of several blocks
   */
  public final void append(final KudoBatch batch, final long sliceBytes) throws IOException {
    hash(batch);
    open(batch);
    for (final KudoSlice slice : batch.slices(sliceBytes)) {
      append(slice);
    }
  }

  /** Hashes the batch's rows if the output has a row checksum, and releases them. */
  void hash(final KudoBatch batch) {
    batch.hash(null);
  }

  /** Waits until the batch is split. */
  abstract void open(KudoBatch batch);

  /**
   * The row checksum of everything that was appended; 0 if none was asked for. To be called before
   * the output is committed, since it may fail.
   */
  public abstract long checksum();

  /** The map output, which this closes. */
  public final MapOutput output() {
    return output;
  }

  @Override
  public void close() {
    output.close();
  }

  /**
   * Packs tables into GPU memory of this executor. The copies are in the order of the task's own
   * stream, as is the freeing of what they read.
   */
  private static final class DeviceSink extends TableSink {
    private final ShuffleNode node;
    private final Duration limit;
    private final TaskStream stream;
    private final OffsetBounds bounds;

    /** Null if the map output reports no row checksum. */
    private final @Nullable RowHash hash;

    DeviceSink(
        final ShuffleNode node,
        final MapOutput output,
        final int partitions,
        final boolean rowChecksum,
        final long attempt,
        final Duration limit) {
      super(output);
      this.node = node;
      this.limit = limit;
      this.stream = new TaskStream(node::gpuStream);
      this.bounds = new OffsetBounds(node, stream);
      this.hash =
          rowChecksum ? new RowHash(partitions, stream, node::gpuHostBuffer, limit, attempt) : null;
    }

    @Override
    public void append(final OutputBatch batch) throws IOException {
      if (batch instanceof TableBatch tables) {
        look(tables);
      }
      if (!batch.isEmpty()) {
        output().append(batch);
      }
    }

    @Override
    void hash(final KudoBatch batch) {
      batch.hash(hash);
    }

    @Override
    void open(final KudoBatch batch) {
      batch.open(RapidsClasses.get(), node.blocksHaveChecksums() ? stream : null, limit);
      if (hash == null) {
        stream.close(); // Idle since that wait; others can use it meanwhile.
      }
    }

    /** Reads of the tables what their headers say, sums them up, and hashes their rows. */
    private void look(final TableBatch tables) {
      final List<OffsetBounds.Wanted> wanted = bounds.enqueue(tables);
      if (node.blocksHaveChecksums()) {
        stream.run(by -> tables.sumUp(by, limit)); // Waits for both.
      } else if (!wanted.isEmpty()) {
        stream.synchronize(limit);
      }
      bounds.take(wanted);
      if (hash != null) {
        final RowHash sums = hash;
        tables.forEach(
            (table, partition) ->
                sums.add(partition, table.rows(), table.metadata(), table.address()));
        sums.launch(); // Behind the wait above: nobody waits for it before the end.
      } else {
        stream.close(); // Idle since that wait; others can use it meanwhile.
      }
    }

    @Override
    public long checksum() {
      return hash == null ? 0 : hash.value();
    }

    @Override
    public void close() {
      try {
        super.close(); // First: copies out of the batch may be under way.
      } finally {
        // What is under way on the stream ends before the memory that it uses is freed.
        stream.close();
        bounds.close();
        if (hash != null) {
          hash.close();
        }
      }
    }

    /**
     * Copies the first and the last offset of every column of strings or lists to the host, for a
     * whole batch by one launch. cudf's metadata has no number of characters, which joining tables
     * needs. For one task's thread; owns its memory.
     */
    private static final class OffsetBounds implements AutoCloseable {
      private static final int BOUND_BYTES = Integer.BYTES;

      private final ShuffleNode node;
      private final TaskStream stream;

      /** Absent before the first need. */
      private @Nullable HostBuffer buffer;

      /**
       * @param stream which is closed before this
       */
      OffsetBounds(final ShuffleNode node, final TaskStream stream) {
        this.node = node;
        this.stream = stream;
      }

      /** A table with such columns. */
      record Wanted(TableBatch.Pending table, PackedColumns columns) {}

      /**
       * Enqueues the copies.
       *
       * @return tables that get bounds by them; what cannot be known stays unknown
       */
      List<Wanted> enqueue(final TableBatch batch) {
        final List<Wanted> wanted = new ArrayList<>();
        final int[] bounds = {0};
        batch.forEach(
            (table, partition) -> {
              final PackedColumns columns = PackedColumns.parse(table.metadata());
              if (columns != null && !columns.bounded().isEmpty() && table.address() != 0) {
                wanted.add(new Wanted(table, columns));
                bounds[0] += 2 * columns.bounded().size();
              }
            });
        if (!wanted.isEmpty()) {
          copy(wanted, bounds[0]);
        }
        return wanted;
      }

      /** Tells each table its bounds, once the stream was waited for. */
      void take(final List<Wanted> wanted) {
        long at = buffer == null ? 0 : buffer.address();
        for (final Wanted next : wanted) {
          final int[] read = new int[2 * next.columns.bounded().size()];
          for (int i = 0; i < read.length; i++, at += BOUND_BYTES) {
            read[i] = Platform.getInt(null, at);
          }
          next.table.bounds(read);
        }
      }

      private void copy(final List<Wanted> wanted, final int bounds) {
        final long bytes = (long) bounds * BOUND_BYTES;
        HostBuffer room = buffer;
        if (room == null || room.bytes() < bytes) {
          close();
          room = node.gpuHostBuffer(Math.max(bytes, 64 << 10));
          buffer = room;
        }
        final CopyBatch batch = stream.get().newBatch();
        long to = room.address();
        for (final Wanted next : wanted) {
          for (final int entry : next.columns.bounded()) {
            final long offsets = next.table.address() + next.columns.data(entry + 1);
            batch.add(offsets, to, BOUND_BYTES);
            batch.add(
                offsets + (long) BOUND_BYTES * next.columns.rows(entry),
                to + BOUND_BYTES,
                BOUND_BYTES);
            to += 2 * BOUND_BYTES;
          }
        }
        stream.get().submit(batch);
      }

      @Override
      public void close() {
        if (buffer != null) {
          buffer.close();
          buffer = null;
        }
      }
    }
  }

  /**
   * Copies tables to the host by cudf's own copies, for an executor that cannot hold blocks in GPU
   * memory although the plan requires it: Zerohop runs nothing on its GPU. They lie in shared host
   * memory, or in files without it, and cudf copies them back to the GPU. Slower, and the same
   * rows.
   */
  private static final class HostSink extends TableSink {
    private final RapidsClasses rapids = RapidsClasses.get();
    private final long checksum;

    /**
     * @param checksum what {@link #checksum} is to say
     */
    HostSink(final MapOutput output, final long checksum) {
      super(output);
      this.checksum = checksum;
    }

    @Override
    public void append(final OutputBatch batch) throws IOException {
      if (!batch.isEmpty()) {
        try (HostTables tables = toHost(batch)) {
          output().append(tables);
        }
      }
    }

    @Override
    void open(final KudoBatch batch) {
      batch.open(rapids, null, Duration.ZERO); // Blocks are summed up on the host.
    }

    /** Waits for each copy, so the tables may be freed when this returns. */
    private HostTables toHost(final OutputBatch batch) {
      final PackSource headers = batch.headers();
      final long bytes = Math.max(1, batch.bytes());
      final HostMemoryBuffer memory = rapids.withRetry(() -> HostMemoryBuffer.allocate(bytes));
      boolean done = false;
      try {
        final long first = memory.getAddress();
        final long[] starts =
            batch.layOut(
                first,
                (from, offset, at, length) -> {
                  try (HostMemoryBuffer part = memory.slice(at - first, length);
                      DeviceMemoryBuffer piece = from.slice(offset, length)) {
                    part.copyFromDeviceBuffer(piece);
                  }
                });
        done = true;
        return new HostTables(headers, starts, memory);
      } finally {
        if (!done) {
          memory.close();
        }
      }
    }

    @Override
    public long checksum() {
      return checksum;
    }

    /**
     * The tables of a batch in memory of this process, partition by partition and without gaps.
     *
     * @param starts where each partition begins, and where the last one ends
     * @param memory owned
     */
    private record HostTables(@Nullable PackSource headers, long[] starts, HostMemoryBuffer memory)
        implements PackSource, AutoCloseable {

      @Override
      public int partitions() {
        return starts.length - 1;
      }

      @Override
      public void forEachChunk(final int partition, final ExtentConsumer consumer) {
        consumer.extents(starts[partition], starts[partition + 1] - starts[partition]);
      }

      @Override
      public void close() {
        memory.close();
      }
    }
  }

  /** Blocks that a map task has on the GPU, partition by partition. For its thread. */
  interface OutputBatch extends PackSource {

    @Override
    default boolean onDevice() {
      return true;
    }

    /** Whether there is none. */
    boolean isEmpty();

    /** Bytes of the blocks on the GPU, without their headers. */
    long bytes();

    /** Receives bytes of blocks: memory on the GPU, the offset in it, and their place. */
    @FunctionalInterface
    interface Placing {
      void place(DeviceMemoryBuffer from, long offset, long address, long bytes);
    }

    /**
     * Lays the bytes out, partition by partition and without gaps.
     *
     * @param first where the first one is to be
     * @return where each partition begins, and where the last one ends
     */
    long[] layOut(long first, Placing placing);
  }
}
