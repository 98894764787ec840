package io.zerohop.spark.spillfiles;

import io.zerohop.shuffle.pool.PoolFullException;
import io.zerohop.shuffle.write.MapOutputWriter;
import io.zerohop.shuffle.write.MapOutputWriter.PackSource;
import io.zerohop.spark.spillfiles.MapOutputFiles.NativeBytes;
import io.zerohop.spark.spillfiles.MapOutputFiles.PartitionBytes;
import io.zerohop.spark.spillfiles.PartitionOutputStream.CountingFile;
import java.io.File;
import java.io.FileInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.nio.file.Files;
import java.util.ArrayList;
import java.util.List;
import java.util.zip.CRC32C;
import java.util.zip.CheckedInputStream;
import org.apache.spark.network.util.LimitedInputStream;
import org.apache.spark.serializer.SerializerManager;
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

  /**
   * A batch of a map output that found no room in the pool, in a temporary file until the whole
   * output is merged. Encrypted where the user asked for that, never compressed. Belongs to one
   * task; {@link #close()} deletes the file.
   */
  public static final class SpilledBatch implements AutoCloseable {
    private final File file;
    private final SerializerManager serializers;
    private final long[] ends;
    private final int[] checksums;

    /** Absent before the first read. */
    private @Nullable FileInputStream in;

    private SpilledBatch(
        final File file, final SerializerManager serializers, final int partitions) {
      this.file = file;
      this.serializers = serializers;
      this.ends = new long[partitions];
      this.checksums = new int[partitions];
    }

    /** Writes all partitions of {@code source} to {@code file}, which is deleted if that fails. */
    public static SpilledBatch write(
        final File file,
        final SerializerManager serializers,
        final int partitions,
        final PartitionBytes source)
        throws IOException {
      final SpilledBatch batch = new SpilledBatch(file, serializers, partitions);
      try (CountingFile out = new CountingFile(file)) {
        for (int partition = 0; partition < partitions; partition++) {
          try (PartitionOutputStream part =
              new PartitionOutputStream(out, serializers::wrapForEncryption)) {
            source.writeTo(partition, part);
          }
          batch.ends[partition] = out.bytes();
          batch.checksums[partition] = out.takeChecksum();
        }
        return batch;
      } catch (final IOException | RuntimeException e) {
        batch.close();
        throw e;
      }
    }

    /** Bytes in the file. */
    public long bytes() {
      return ends.length == 0 ? 0 : ends[ends.length - 1];
    }

    /**
     * Copies the plain bytes of a partition.
     *
     * @throws IOException also if they are not what was written
     */
    public void writeTo(final int partition, final OutputStream out) throws IOException {
      final long start = partition == 0 ? 0 : ends[partition - 1];
      final long length = ends[partition] - start;
      if (length == 0) {
        return;
      }
      if (in == null) {
        in = new FileInputStream(file);
      }
      in.getChannel().position(start);
      final CheckedInputStream stored =
          new CheckedInputStream(new LimitedInputStream(in, length, false), new CRC32C());
      try (InputStream plain = serializers.wrapForEncryption(stored)) {
        plain.transferTo(out);
      }
      if ((int) stored.getChecksum().getValue() != checksums[partition]) {
        throw new IOException(
            "partition " + partition + " of the spilled batch " + file + " is damaged");
      }
    }

    /** Closes all of them, and fails only then if one cannot be closed. */
    public static void closeAll(final Iterable<SpilledBatch> batches) throws IOException {
      IOException failure = null;
      for (final SpilledBatch batch : batches) {
        try {
          batch.close();
        } catch (final IOException e) {
          failure = e;
        }
      }
      if (failure != null) {
        throw failure;
      }
    }

    @Override
    public void close() throws IOException {
      if (in != null) {
        in.close();
      }
      Files.deleteIfExists(file.toPath());
    }
  }
}
