package io.zerohop.spark.spillfiles;

import io.zerohop.spark.spillfiles.MapOutputFiles.PartitionBytes;
import io.zerohop.spark.spillfiles.PartitionOutputStream.CountingFile;
import java.io.File;
import java.io.FileInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.nio.file.Files;
import java.util.zip.CRC32C;
import java.util.zip.CheckedInputStream;
import org.apache.spark.network.util.LimitedInputStream;
import org.apache.spark.serializer.SerializerManager;
import org.jspecify.annotations.Nullable;

/**
 * A batch of a map output that found no room in the pool, in a temporary file until the whole
 * output is merged. Encrypted where the user asked for that, never compressed. Belongs to one task;
 * {@link #close()} deletes the file.
 */
public final class SpilledBatch implements AutoCloseable {
  private final File file;
  private final SerializerManager serializers;
  private final long[] ends;
  private final int[] checksums;

  /** Absent before the first read. */
  private @Nullable FileInputStream in;

  private SpilledBatch(final File file, final SerializerManager serializers, final int partitions) {
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
