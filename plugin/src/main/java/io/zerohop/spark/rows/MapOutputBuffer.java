package io.zerohop.spark.rows;

import io.zerohop.shuffle.pool.PoolFullException;
import io.zerohop.shuffle.write.MapOutputWriter;
import io.zerohop.spark.files.MapOutputFiles;
import io.zerohop.spark.files.NativeBytes;
import io.zerohop.spark.files.SpilledBatch;
import java.io.IOException;
import java.io.OutputStream;
import java.util.ArrayList;
import java.util.List;

/**
 * The output of one map task while it is written: records gather in an arena, full arenas are
 * packed into the pool batch by batch. When the pool has no room the whole output becomes a file
 * instead, so no task fails for lack of shared memory.
 *
 * <p>Belongs to one task thread. {@link #close()} frees everything that was not committed.
 */
final class MapOutputBuffer implements AutoCloseable {

  private final int shuffleId;
  private final long mapId;
  private final PartitionArena arena;
  private final MapOutputWriter memory;
  private final MapOutputFiles files;
  private final NativeBytes copier = new NativeBytes();
  private final List<SpilledBatch> spilled = new ArrayList<>();
  private boolean toFile;
  private long packNanos;

  /**
   * A new output.
   *
   * @param memory where batches go; owned and closed here; null if this executor has no pool
   */
  MapOutputBuffer(
      final int shuffleId,
      final long mapId,
      final PartitionArena arena,
      final MapOutputWriter memory,
      final MapOutputFiles files) {
    this.shuffleId = shuffleId;
    this.mapId = mapId;
    this.arena = arena;
    this.memory = memory;
    this.files = files;
    this.toFile = memory == null;
  }

  /** Reserves contiguous bytes at the end of a partition; the caller fills all of them. */
  long reserve(final int partition, final int bytes) throws IOException {
    final long at = arena.reserve(partition, bytes);
    if (at != 0) {
      return at;
    }
    flush();
    return arena.reserve(partition, bytes);
  }

  /** Appends bytes that may be cut anywhere. */
  void append(final int partition, final byte[] source, final int offset, final int length)
      throws IOException {
    int done = arena.append(partition, source, offset, length);
    while (done < length) {
      flush();
      done += arena.append(partition, source, offset + done, length - done);
    }
  }

  /** A stream that appends to a partition; closing it has no effect. */
  OutputStream stream(final int partition) {
    return new OutputStream() {
      private final byte[] single = new byte[1];

      @Override
      public void write(final int b) throws IOException {
        single[0] = (byte) b;
        append(partition, single, 0, 1);
      }

      @Override
      public void write(final byte[] bytes, final int offset, final int length) throws IOException {
        append(partition, bytes, offset, length);
      }
    };
  }

  private void flush() throws IOException {
    if (!pack()) {
      final long start = System.nanoTime();
      spilled.add(files.spill(arena.partitions(), this::writeArena));
      arena.reset();
      packNanos += System.nanoTime() - start;
    }
  }

  /** Packs the arena into the pool; false when the pool is full, now or before. */
  private boolean pack() {
    if (toFile) {
      return false;
    }
    final long start = System.nanoTime();
    try {
      if (!arena.isEmpty()) {
        memory.append(arena);
        arena.reset();
      }
      return true;
    } catch (final PoolFullException e) {
      toFile(e);
      return false;
    } finally {
      packNanos += System.nanoTime() - start;
    }
  }

  private void toFile(final PoolFullException reason) {
    toFile = true;
    memory.leave(reason);
  }

  /**
   * Completes the output.
   *
   * @return the bytes of each partition, as stored
   */
  long[] commit() throws IOException {
    final boolean packed = pack();
    final long start = System.nanoTime();
    try {
      return packed ? memory.commit() : writeFile();
    } catch (final PoolFullException e) {
      // There was room for the bytes, but none for their entry in the catalog.
      toFile(e);
      return writeFile();
    } finally {
      packNanos += System.nanoTime() - start;
    }
  }

  private long[] writeFile() throws IOException {
    return files.write(shuffleId, mapId, arena.partitions(), this::writeEverything);
  }

  private void writeArena(final int partition, final OutputStream out) throws IOException {
    MapOutputFiles.copyExtents(consumer -> arena.forEachChunk(partition, consumer), copier, out);
  }

  /** A partition's bytes in the order in which they were written: memory, spills, arena. */
  private void writeEverything(final int partition, final OutputStream out) throws IOException {
    if (memory != null) {
      MapOutputFiles.copyExtents(
          consumer -> memory.forEachExtent(partition, consumer), copier, out);
    }
    for (final SpilledBatch batch : spilled) {
      batch.writeTo(partition, out);
    }
    writeArena(partition, out);
  }

  /** Nanoseconds spent on packing and on files. */
  long packNanos() {
    return packNanos;
  }

  /** Bytes that went to temporary files. */
  long spilledBytes() {
    return spilled.stream().mapToLong(SpilledBatch::bytes).sum();
  }

  @Override
  public void close() throws IOException {
    arena.close();
    if (memory != null) {
      memory.close();
    }
    SpilledBatch.closeAll(spilled);
  }
}
