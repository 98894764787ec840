package io.zerohop.spark.rapids.write;

import io.zerohop.shuffle.pool.PoolFullException;
import io.zerohop.shuffle.write.MapOutputWriter;
import io.zerohop.shuffle.write.PackSource;
import io.zerohop.spark.files.MapOutputFiles;
import io.zerohop.spark.files.NativeBytes;
import io.zerohop.spark.files.SpilledBatch;
import java.io.IOException;
import java.io.OutputStream;
import java.util.ArrayList;
import java.util.List;
import java.util.function.Supplier;

/**
 * The output of one map task: batches of tables go to this executor's memory, and when that is full
 * or there is none the whole output becomes a file. Belongs to one task's thread; {@link #close}
 * frees everything that was not committed.
 */
public final class TableOutput implements AutoCloseable {
  private final int shuffleId;
  private final long mapId;
  private final int partitions;
  private final MapOutputFiles files;
  private final NativeBytes copier = new NativeBytes();
  private final List<SpilledBatch> spilled = new ArrayList<>();

  /** Null if this executor has none to hold blocks in. */
  private final MapOutputWriter memory;

  private boolean toFile;

  /**
   * A new output.
   *
   * @param memory owned from now on; null if everything is to go to files
   */
  public TableOutput(
      final int shuffleId,
      final long mapId,
      final int partitions,
      final MapOutputWriter memory,
      final MapOutputFiles files) {
    this.shuffleId = shuffleId;
    this.mapId = mapId;
    this.partitions = partitions;
    this.memory = memory;
    this.files = files;
    this.toFile = memory == null;
  }

  /**
   * Packs a batch, which may be cleared when this returns.
   *
   * @param payload its blocks' bytes
   * @param toHost brings them to the host, for a file; closed here
   */
  void append(final OutputBatch batch, final PackSource payload, final Supplier<HostTables> toHost)
      throws IOException {
    if (batch.isEmpty()) {
      return;
    }
    if (!toFile) {
      try {
        final PackSource headers = batch.headers();
        if (headers == null) {
          memory.append(payload);
        } else {
          memory.append(headers, payload);
        }
        return;
      } catch (final PoolFullException e) {
        toFile(e);
      }
    }
    try (HostTables tables = toHost.get()) {
      spill(batch, tables);
    }
  }

  private void toFile(final PoolFullException reason) {
    toFile = true;
    memory.leave(reason);
  }

  private void spill(final OutputBatch batch, final HostTables tables) throws IOException {
    spilled.add(
        files.spill(
            partitions,
            (partition, out) -> {
              final byte[] header = batch.header(partition);
              if (header.length > 0) {
                out.write(header);
              }
              copier.copyTo(tables.address(partition), tables.bytes(partition), out);
            }));
  }

  /**
   * Completes the output.
   *
   * @return the bytes of each partition, as stored
   */
  long[] commit() throws IOException {
    if (!toFile) {
      try {
        return memory.commit();
      } catch (final PoolFullException e) {
        // There was room for the bytes, but none for their entry in the catalog.
        toFile(e);
      }
    }
    return files.write(shuffleId, mapId, partitions, this::writeEverything);
  }

  private void writeEverything(final int partition, final OutputStream out) throws IOException {
    if (memory != null) {
      MapOutputFiles.copyExtents(
          consumer -> memory.forEachExtent(partition, consumer), copier, out);
    }
    for (final SpilledBatch batch : spilled) {
      batch.writeTo(partition, out);
    }
  }

  /** Bytes that found no room on the GPU and lie in host memory. */
  long deflectedBytes() {
    return memory == null ? 0 : memory.deflectedBytes();
  }

  /** Bytes that went to temporary files. */
  long spilledBytes() {
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
