package io.zerohop.spark.spillfiles;

import io.zerohop.shuffle.pool.PoolFullException;
import io.zerohop.shuffle.write.MapOutputWriter;
import io.zerohop.shuffle.write.MapOutputWriter.PackSource;
import io.zerohop.spark.spillfiles.MapOutputFiles.NativeBytes;
import java.io.IOException;
import java.io.OutputStream;
import java.util.ArrayList;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * The output of one map task: batches go to this executor's memory while there is room, and then to
 * temporary files. {@link #commit} makes one file of both. So no task fails for lack of memory.
 * Belongs to one task's thread; {@link #close} frees everything that was not committed.
 */
public final class OverflowingOutput implements AutoCloseable {
  private final int shuffleId;
  private final long mapId;
  private final int partitions;
  private final MapOutputFiles files;
  private final NativeBytes copier = new NativeBytes();
  private final List<SpilledBatch> spilled = new ArrayList<>();

  /** Absent if this executor has none to hold blocks in. */
  private final @Nullable MapOutputWriter memory;

  private boolean full;

  /**
   * A new output.
   *
   * @param memory owned from now on; without it, everything goes to files
   */
  public OverflowingOutput(
      final int shuffleId,
      final long mapId,
      final int partitions,
      final @Nullable MapOutputWriter memory,
      final MapOutputFiles files) {
    this.shuffleId = shuffleId;
    this.mapId = mapId;
    this.partitions = partitions;
    this.memory = memory;
    this.files = files;
    this.full = memory == null;
  }

  /**
   * Packs a batch into memory.
   *
   * @return false if there is no room, now or since before: the batch is the caller's to {@link
   *     #spill}, or the rest of a {@link #commit}
   */
  public boolean pack(final PackSource batch) {
    return pack(null, batch);
  }

  /**
   * Packs a batch of the GPU's.
   *
   * @param headers what the host has to say of each block; absent if they describe themselves
   * @return as above
   */
  public boolean pack(final @Nullable PackSource headers, final PackSource payload) {
    final MapOutputWriter to = memory;
    if (to == null || full) {
      return false;
    }
    try {
      if (headers == null) {
        to.append(payload);
      } else {
        to.append(headers, payload);
      }
      return true;
    } catch (final PoolFullException e) {
      leave(to, e);
      return false;
    }
  }

  private void leave(final MapOutputWriter left, final PoolFullException reason) {
    full = true;
    left.leave(reason);
  }

  /**
   * Writes a batch to a temporary file.
   *
   * @param parts of each block, one behind the other, in memory that the host reads
   */
  public void spill(final PackSource... parts) throws IOException {
    spilled.add(files.spill(partitions, (partition, out) -> copy(parts, partition, out)));
  }

  /**
   * Completes the output.
   *
   * @param rest of a batch that was not packed: goes behind everything else if the output becomes a
   *     file, and is not looked at otherwise
   * @return the bytes of each partition, as stored
   */
  public long[] commit(final PackSource... rest) throws IOException {
    final MapOutputWriter in = memory;
    if (in != null && !full) {
      try {
        return in.commit();
      } catch (final PoolFullException e) {
        // There was room for the bytes, but none for their entry in the catalog.
        leave(in, e);
      }
    }
    return files.write(
        shuffleId, mapId, partitions, (partition, out) -> copyAll(rest, partition, out));
  }

  /** A partition's bytes in the order in which they were written. */
  private void copyAll(final PackSource[] rest, final int partition, final OutputStream out)
      throws IOException {
    final MapOutputWriter in = memory;
    if (in != null) {
      MapOutputFiles.copyExtents(consumer -> in.forEachExtent(partition, consumer), copier, out);
    }
    for (final SpilledBatch batch : spilled) {
      batch.writeTo(partition, out);
    }
    copy(rest, partition, out);
  }

  private void copy(final PackSource[] parts, final int partition, final OutputStream out)
      throws IOException {
    for (final PackSource part : parts) {
      MapOutputFiles.copyExtents(consumer -> part.forEachChunk(partition, consumer), copier, out);
    }
  }

  /** Bytes that found no room on the GPU and lie in host memory. */
  public long overflowedBytes() {
    return memory == null ? 0 : memory.overflowedBytes();
  }

  /** Bytes that went to temporary files. */
  public long spilledBytes() {
    return spilled.stream().mapToLong(SpilledBatch::bytes).sum();
  }

  @Override
  public void close() throws IOException {
    if (memory != null) {
      memory.close();
    }
    SpilledBatch.closeAll(spilled);
  }
}
