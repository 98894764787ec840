package io.zerohop.spark.outputfiles;

import io.zerohop.device.Undo;
import io.zerohop.shuffle.write.MapOutput.HostBlocks;
import io.zerohop.shuffle.write.MapOutput.OverflowFiles;
import io.zerohop.spark.outputfiles.MapOutputFiles.NativeBytes;
import io.zerohop.spark.outputfiles.PartitionOutputStream.CountingFile;
import io.zerohop.spark.outputfiles.PartitionOutputStream.PartitionBytes;
import java.io.File;
import java.io.FileInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.nio.file.Files;
import java.util.ArrayList;
import java.util.List;
import java.util.UUID;
import java.util.zip.CRC32C;
import java.util.zip.CheckedInputStream;
import org.apache.spark.SparkEnv;
import org.apache.spark.network.util.LimitedInputStream;
import org.apache.spark.serializer.SerializerManager;
import org.jspecify.annotations.Nullable;

/**
 * The batches of one map output that found no room in memory, in temporary files until {@link
 * #write} makes one file of the output. Belongs to one task's thread.
 */
final class SpilledBatches implements OverflowFiles {
  private final MapOutputFiles files;
  private final int shuffleId;
  private final long mapId;
  private final int partitions;
  private final List<SpilledBatch> spilled = new ArrayList<>();

  /**
   * @param files where the map output's file goes
   */
  SpilledBatches(
      final MapOutputFiles files, final int shuffleId, final long mapId, final int partitions) {
    this.files = files;
    this.shuffleId = shuffleId;
    this.mapId = mapId;
    this.partitions = partitions;
  }

  /**
   * Writes a batch to a temporary file in one of Spark's local directories.
   *
   * @throws IOException if none of them takes it
   */
  @Override
  public void spill(final HostBlocks batch) throws IOException {
    final SerializerManager serializers = SparkEnv.get().serializerManager();
    final String name = "zerohop_batch_" + UUID.randomUUID();
    final NativeBytes copier = new NativeBytes();
    final PartitionBytes source = (partition, out) -> copier.copy(batch, partition, out);
    spilled.add(
        LocalDirs.firstThatWorks(
            "a batch of a map output",
            dir -> SpilledBatch.write(LocalDirs.file(dir, name), serializers, partitions, source)));
  }

  @Override
  public long[] write(final HostBlocks first, final HostBlocks last) throws IOException {
    final NativeBytes copier = new NativeBytes();
    return files.write(
        shuffleId,
        mapId,
        partitions,
        (partition, out) -> {
          copier.copy(first, partition, out);
          for (final SpilledBatch batch : spilled) {
            batch.writeTo(partition, out);
          }
          copier.copy(last, partition, out);
        });
  }

  @Override
  public long spilledBytes() {
    return spilled.stream().mapToLong(SpilledBatch::bytes).sum();
  }

  @Override
  public void close() {
    for (final SpilledBatch batch : spilled) {
      try {
        batch.close();
      } catch (final IOException e) {
        MapOutputFiles.warnNotDeleted(shuffleId, mapId, e);
      }
    }
  }

  /**
   * A batch of a map output that found no room in the pool, in a temporary file until the whole
   * output is merged. Encrypted where the user asked for that, never compressed. Belongs to one
   * task; {@link #close()} deletes the file.
   */
  static final class SpilledBatch implements AutoCloseable {
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
    static SpilledBatch write(
        final File file,
        final SerializerManager serializers,
        final int partitions,
        final PartitionBytes source)
        throws IOException {
      final SpilledBatch batch = new SpilledBatch(file, serializers, partitions);
      try (Undo undo = new Undo(batch)) {
        final long[] lengths = new long[partitions];
        CountingFile.write(
            file,
            (partition, out) -> serializers.wrapForEncryption(out),
            source,
            lengths,
            batch.checksums);
        long end = 0;
        for (int partition = 0; partition < partitions; partition++) {
          end += lengths[partition];
          batch.ends[partition] = end;
        }
        return undo.keep(batch);
      }
    }

    /** Bytes in the file. */
    long bytes() {
      return ends.length == 0 ? 0 : ends[ends.length - 1];
    }

    /**
     * Copies the plain bytes of a partition.
     *
     * @throws IOException also if they are not what was written
     */
    void writeTo(final int partition, final OutputStream out) throws IOException {
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

    @Override
    public void close() throws IOException {
      if (in != null) {
        in.close();
      }
      Files.deleteIfExists(file.toPath());
    }
  }
}
