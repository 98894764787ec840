package io.zerohop.spark.rapids;

import io.zerohop.device.CopyBatch;
import io.zerohop.device.CopyStream;
import io.zerohop.device.HostBuffer;
import io.zerohop.shuffle.MapOutputWriter;
import io.zerohop.shuffle.PackSource;
import io.zerohop.shuffle.ShuffleNode;
import io.zerohop.shuffle.pool.PoolFullException;
import io.zerohop.spark.NativeBytes;
import io.zerohop.spark.staged.MapOutputFiles;
import io.zerohop.spark.staged.SpilledBatch;
import java.io.IOException;
import java.io.OutputStream;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;

/**
 * The output of one map task on the GPU: batches of tables go to the GPU's pool, to the host's
 * where that is full, and when both are the whole output becomes a file. Belongs to one task's
 * thread; {@link #close} frees everything that was not committed.
 */
final class TableOutput implements AutoCloseable {

  private final int shuffleId;
  private final long mapId;
  private final int partitions;
  private final ShuffleNode node;
  private final MapOutputWriter memory;
  private final MapOutputFiles files;
  private final Duration limit;
  private final NativeBytes copier = new NativeBytes();
  private final List<SpilledBatch> spilled = new ArrayList<>();
  private boolean toFile;

  /**
   * A new output.
   *
   * @param limit of the copy of one batch to the host
   */
  TableOutput(
      final int shuffleId,
      final long mapId,
      final int partitions,
      final ShuffleNode node,
      final MapOutputFiles files,
      final Duration limit) {
    this.shuffleId = shuffleId;
    this.mapId = mapId;
    this.partitions = partitions;
    this.node = node;
    this.files = files;
    this.limit = limit;
    this.memory = node.newMapOutput(shuffleId, mapId, partitions);
  }

  /** Packs a batch, which may be cleared when this returns. */
  void append(final TableBatch batch) throws IOException {
    if (batch.isEmpty()) {
      return;
    }
    if (!toFile) {
      try {
        memory.append(batch.headers(), batch.payload());
        return;
      } catch (final PoolFullException e) {
        toFile(e);
      }
    }
    spill(batch);
  }

  private void toFile(final PoolFullException reason) {
    toFile = true;
    memory.leave(reason);
  }

  /** Brings a batch to the host and from there to a temporary file. */
  private void spill(final TableBatch batch) throws IOException {
    try (HostBuffer landed = node.gpuHostBuffer(Math.max(1, batch.bytes()))) {
      final PackSource payload = batch.payload();
      final long[] starts = new long[partitions + 1];
      starts[0] = landed.address();
      try (CopyStream stream = node.gpuStream()) {
        final CopyBatch copies = stream.newBatch();
        for (int partition = 0; partition < partitions; partition++) {
          final long[] at = {starts[partition]};
          payload.forEachChunk(
              partition,
              (address, length) -> {
                copies.add(address, at[0], length);
                at[0] += length;
              });
          starts[partition + 1] = at[0];
        }
        stream.submit(copies);
        stream.synchronize(limit);
      }
      spilled.add(
          files.spill(
              partitions,
              (partition, out) -> {
                final byte[] header = batch.header(partition);
                if (header.length > 0) {
                  out.write(header);
                }
                copier.copyTo(starts[partition], starts[partition + 1] - starts[partition], out);
              }));
    }
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
    MapOutputFiles.copyExtents(consumer -> memory.forEachExtent(partition, consumer), copier, out);
    for (final SpilledBatch batch : spilled) {
      batch.writeTo(partition, out);
    }
  }

  /** Bytes that found no room on the GPU and lie in host memory. */
  long deflectedBytes() {
    return memory.deflectedBytes();
  }

  /** Bytes that went to temporary files. */
  long spilledBytes() {
    return spilled.stream().mapToLong(SpilledBatch::bytes).sum();
  }

  @Override
  public void close() throws IOException {
    memory.close();
    SpilledBatch.closeAll(spilled);
  }
}
