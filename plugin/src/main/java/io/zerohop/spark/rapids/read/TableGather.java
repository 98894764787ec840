package io.zerohop.spark.rapids.read;

import ai.rapids.cudf.DeviceMemoryBuffer;
import ai.rapids.cudf.HostMemoryBuffer;
import io.zerohop.device.BlockChecksums;
import io.zerohop.device.CopyBatch;
import io.zerohop.device.CopyRuns;
import io.zerohop.device.CopyStream;
import io.zerohop.device.HostBuffer;
import io.zerohop.device.Signal.SignalEpoch;
import io.zerohop.device.SpliceBatch;
import io.zerohop.shuffle.ShuffleNode;
import io.zerohop.shuffle.fetch.FetchedBlock;
import io.zerohop.spark.rapids.api.RapidsClasses;
import io.zerohop.spark.rapids.api.TaskStream;
import io.zerohop.spark.rapids.format.TableAssembly;
import java.io.EOFException;
import java.io.IOException;
import java.io.InputStream;
import java.time.Duration;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.function.LongFunction;
import org.apache.spark.unsafe.Platform;
import org.jspecify.annotations.Nullable;

/**
 * Copies bytes of tables into RAPIDS' memory, in the order of the task's own stream. For one task's
 * thread.
 */
public sealed interface TableGather extends AutoCloseable {

  /**
   * Begins to gather for one reader, which closes it.
   *
   * @param gpu the node whose GPU gathers; absent if cudf copies
   * @param limit of one gather on the GPU
   */
  static TableGather begin(final @Nullable ShuffleNode gpu, final Duration limit) {
    return gpu == null ? new HostGather() : new DeviceGather(gpu, limit);
  }

  /** Has everything that is gathered from now on wait until a block is there, if it is not. */
  void await(FetchedBlock block);

  /** Memory of this process of at least so many bytes from which it can gather. */
  HostBuffer hostBuffer(long bytes);

  /** Whether an extent lies in GPU memory. */
  boolean isOnDevice(FetchedBlock block, int extent);

  /** Whether it can gather an extent from where that lies. */
  boolean reaches(FetchedBlock block, int extent);

  /** Whether it can put tables together into one. */
  boolean canAssemble();

  /**
   * Brings tables right into the columns of one, at once.
   *
   * @param sources where each of them is
   * @param destination of the whole
   */
  void assemble(TableAssembly plan, long[] sources, long destination);

  /** Bytes and where they go, counted from the beginning of the destination. */
  record Piece(long source, long offset, long bytes) {}

  /** Brings bytes to a buffer. */
  void copy(List<Piece> pieces, DeviceMemoryBuffer to);

  /**
   * The CRC32C of what was brought to a buffer. Waits for that, and for them.
   *
   * @param addresses in that buffer
   * @return null if it cannot tell, as one whose blocks the host has verified
   */
  int @Nullable [] checksums(long[] addresses, long[] lengths);

  /** Waits until nothing is read any more of what was gathered. */
  void finish();

  /** Waits likewise, and ends it. */
  @Override
  void close();

  /** Gathers by launches of Zerohop's kernels, from all memory that the GPU reaches. */
  final class DeviceGather implements TableGather {
    private final ShuffleNode node;
    private final Duration limit;
    private final TaskStream stream;

    /** What the stream is to wait for, and a block of each. */
    private final Map<SignalEpoch, FetchedBlock> awaited = new LinkedHashMap<>();

    private boolean underWay;

    /**
     * @param limit of one gather
     */
    public DeviceGather(final ShuffleNode node, final Duration limit) {
      this.node = node;
      this.limit = limit;
      this.stream = new TaskStream(node::gpuStream);
    }

    @Override
    public void await(final FetchedBlock block) {
      final SignalEpoch ready = block.ready();
      if (ready != null) {
        awaited.putIfAbsent(ready, block);
      }
    }

    /**
     * The stream waits on the GPU, right before it gathers: one launch of one warp for all blocks.
     * The gather's own launch could wait, but would hold multiprocessors that the copies need that
     * it waits for.
     */
    private void enqueueWaits(final CopyStream by) {
      underWay = true;
      if (!awaited.isEmpty()) {
        by.await(List.copyOf(awaited.keySet()), node.readyTimeout());
      }
    }

    /**
     * Ends these waits with the result that they wait for, or that of its owner. A failed wait is
     * passed over silently, and its result may come later, so it also makes sure that the work
     * before them was done.
     */
    private void seeToWaits() {
      if (awaited.isEmpty()) {
        return;
      }
      try {
        stream.run( // If it fails, what is behind the wait does not happen.
            by -> {
              awaited.values().forEach(FetchedBlock::awaitReady);
              by.synchronize(limit);
            });
      } finally {
        awaited.clear();
      }
    }

    @Override
    public HostBuffer hostBuffer(final long bytes) {
      return node.gpuHostBuffer(bytes);
    }

    @Override
    public boolean isOnDevice(final FetchedBlock block, final int extent) {
      return block.extentOnDevice(extent);
    }

    @Override
    public boolean reaches(final FetchedBlock block, final int extent) {
      return block.extentReachable(extent);
    }

    @Override
    public boolean canAssemble() {
      return true;
    }

    @Override
    public void assemble(final TableAssembly plan, final long[] sources, final long destination) {
      final CopyStream by = stream.get();
      final CopyBatch copy = by.newBatch();
      final SpliceBatch splice = new SpliceBatch();
      plan.fill(sources, destination, copy, splice);
      enqueueWaits(by);
      by.submit(copy);
      by.submit(splice);
      seeToWaits();
    }

    @Override
    public void copy(final List<Piece> pieces, final DeviceMemoryBuffer to) {
      final CopyStream by = stream.get();
      final CopyBatch batch = by.newBatch();
      final CopyRuns runs = new CopyRuns(batch);
      for (final Piece piece : pieces) {
        runs.add(piece.source(), to.getAddress() + piece.offset(), piece.bytes());
      }
      runs.end();
      enqueueWaits(by);
      by.submit(batch);
      seeToWaits();
    }

    @Override
    public int[] checksums(final long[] addresses, final long[] lengths) {
      final int[][] sums = new int[1][];
      stream.run(by -> sums[0] = BlockChecksums.of(by, addresses, lengths, limit));
      return sums[0];
    }

    @Override
    public void finish() {
      if (underWay) {
        stream.synchronize(limit);
        underWay = false;
      }
    }

    @Override
    public void close() {
      stream.close();
    }
  }

  /**
   * Gathers by cudf's own copies, table by table and out of its own host memory; Zerohop runs
   * nothing on the GPU. Each copy has ended when {@link #copy} returns.
   */
  final class HostGather implements TableGather {
    /** By address; owned by those who asked for them. */
    private final TreeMap<Long, HostMemoryBuffer> buffers = new TreeMap<>();

    private final RapidsClasses rapids = RapidsClasses.get();

    @Override
    public HostBuffer hostBuffer(final long bytes) {
      final HostMemoryBuffer memory = rapids.withRetry(() -> HostMemoryBuffer.allocate(bytes));
      buffers.put(memory.getAddress(), memory);
      return new HostBuffer() {
        @Override
        public long address() {
          return memory.getAddress();
        }

        @Override
        public long bytes() {
          return memory.getLength();
        }

        @Override
        public void close() {
          if (buffers.values().remove(memory)) {
            memory.close();
          }
        }
      };
    }

    @Override
    public void await(final FetchedBlock block) {
      // What the host reads is there when it is handed out.
    }

    @Override
    public boolean isOnDevice(final FetchedBlock block, final int extent) {
      return false; // Blocks are asked for on behalf of the host.
    }

    @Override
    public boolean reaches(final FetchedBlock block, final int extent) {
      return false;
    }

    @Override
    public boolean canAssemble() {
      return false;
    }

    @Override
    public void assemble(final TableAssembly plan, final long[] sources, final long destination) {
      throw new UnsupportedOperationException("cudf has no copies of this kind");
    }

    @Override
    public void copy(final List<Piece> pieces, final DeviceMemoryBuffer to) {
      for (final Piece piece : pieces) {
        final Map.Entry<Long, HostMemoryBuffer> from = buffers.floorEntry(piece.source());
        try (DeviceMemoryBuffer part = to.slice(piece.offset(), piece.bytes())) {
          part.copyFromHostBuffer(from.getValue(), piece.source() - from.getKey(), piece.bytes());
        }
      }
    }

    @Override
    public int @Nullable [] checksums(final long[] addresses, final long[] lengths) {
      return null;
    }

    @Override
    public void finish() {
      // Nothing is under way.
    }

    @Override
    public void close() {
      // Buffers are closed by their owner.
    }
  }

  /**
   * Host memory that the GPU reaches, in which bytes from the host wait to be gathered with the
   * others. For one thread; owns its buffers.
   */
  final class HostStaging implements AutoCloseable {
    private static final long BUFFER_BYTES = 8L << 20;
    private static final int ALIGNMENT = 256;
    private static final int STEP_BYTES = 64 << 10;

    /** Of one table, how much is taken on the word of its header: more has to come first. */
    private static final long BELIEVED_BYTES = 64L << 20;

    /** The factor by which the next estimate may exceed the bytes that have arrived. */
    private static final long GROWTH = 4;

    private final LongFunction<HostBuffer> allocator;
    private final List<HostBuffer> buffers = new ArrayList<>();
    private long next;
    private long end;

    /**
     * @param allocator gives a buffer of at least so many bytes
     */
    HostStaging(final LongFunction<HostBuffer> allocator) {
      this.allocator = allocator;
    }

    /** Copies bytes of this process; returns where they are now. */
    long copy(final long address, final long bytes) {
      final long at = take(bytes);
      Platform.copyMemory(null, address, null, at, bytes);
      return at;
    }

    /**
     * Reads bytes of a stream; returns where they are now. Takes no more memory than a few times
     * what comes, whatever a header has said.
     *
     * @throws EOFException if it ends before
     */
    long read(final InputStream in, final long bytes) throws IOException {
      if (bytes > BELIEVED_BYTES) {
        return readLong(in, bytes);
      }
      final long at = take(bytes);
      fill(in, at, 0, bytes, bytes);
      return at;
    }

    /** Into a buffer of its own, which grows with what has come. */
    private long readLong(final InputStream in, final long bytes) throws IOException {
      long room = BELIEVED_BYTES;
      HostBuffer buffer = allocator.apply(room);
      boolean done = false;
      try {
        fill(in, buffer.address(), 0, room, bytes);
        while (room < bytes) {
          final long there = room;
          room = Math.min(bytes, GROWTH * there);
          final HostBuffer larger = allocator.apply(room);
          Platform.copyMemory(null, buffer.address(), null, larger.address(), there);
          buffer.close();
          buffer = larger;
          fill(in, buffer.address(), there, room, bytes);
        }
        buffers.add(buffer);
        done = true;
        return buffer.address();
      } finally {
        if (!done) {
          buffer.close();
        }
      }
    }

    /** Reads what belongs from one place behind an address to another. */
    private static void fill(
        final InputStream in, final long at, final long from, final long to, final long bytes)
        throws IOException {
      final byte[] step = new byte[(int) Math.min(STEP_BYTES, to - from)];
      for (long done = from; done < to; ) {
        final int read = in.read(step, 0, (int) Math.min(step.length, to - done));
        if (read < 0) {
          throw new EOFException("a table ends after " + done + " of " + bytes + " bytes");
        }
        Platform.copyMemory(step, Platform.BYTE_ARRAY_OFFSET, null, at + done, read);
        done += read;
      }
    }

    /** Bytes of its buffers. */
    long bytes() {
      return buffers.stream().mapToLong(HostBuffer::bytes).sum();
    }

    private long take(final long bytes) {
      if (end - next < bytes) {
        final HostBuffer buffer = allocator.apply(Math.max(BUFFER_BYTES, bytes));
        buffers.add(buffer);
        next = buffer.address();
        end = next + buffer.bytes();
      }
      final long at = next;
      next = (next + bytes + ALIGNMENT - 1) & -ALIGNMENT;
      return at;
    }

    /** Frees everything; no copy may be under way. */
    @Override
    public void close() {
      buffers.forEach(HostBuffer::close);
      buffers.clear();
      next = 0;
      end = 0;
    }
  }
}
