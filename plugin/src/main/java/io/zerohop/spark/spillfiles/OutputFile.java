package io.zerohop.spark.spillfiles;

import java.io.BufferedOutputStream;
import java.io.DataOutputStream;
import java.io.File;
import java.io.FileOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.nio.file.Files;
import java.util.Locale;
import java.util.zip.CRC32C;
import java.util.zip.CheckedInputStream;
import org.apache.spark.network.buffer.ManagedBuffer;
import org.apache.spark.storage.ShuffleBlockId;
import org.apache.spark.storage.ShuffleDataBlockId;
import org.apache.spark.storage.ShuffleIndexBlockId;

/**
 * The two files of a map output.
 *
 * @param checksums CRC32C of each partition's bytes, as stored
 * @param dir the local directory that they lie in; null if it is the one that Spark chooses
 */
record OutputFile(int[] checksums, String dir) {
  /** Returns the data file. */
  File data(final int shuffleId, final long mapId) throws IOException {
    return LocalDirs.file(dir, new ShuffleDataBlockId(shuffleId, mapId, 0).name());
  }

  private File index(final int shuffleId, final long mapId) throws IOException {
    return LocalDirs.file(dir, new ShuffleIndexBlockId(shuffleId, mapId, 0).name());
  }

  /** Writes where each partition begins, and where the last one ends, as Spark reads it. */
  void writeIndex(final int shuffleId, final long mapId, final long[] lengths) throws IOException {
    try (DataOutputStream out =
        new DataOutputStream(
            new BufferedOutputStream(new FileOutputStream(index(shuffleId, mapId))))) {
      long offset = 0;
      out.writeLong(offset);
      for (final long length : lengths) {
        offset += length;
        out.writeLong(offset);
      }
    }
  }

  /**
   * Makes sure that a block is what was written.
   *
   * @param stored the block, as it was found in the data file
   * @throws IOException if it is not, or cannot be read
   */
  void verify(final ShuffleBlockId id, final ManagedBuffer stored) throws IOException {
    final CRC32C sum = new CRC32C();
    try (InputStream in = new CheckedInputStream(stored.createInputStream(), sum)) {
      in.transferTo(OutputStream.nullOutputStream());
    }
    final int actual = (int) sum.getValue();
    final int expected = checksums[id.reduceId()];
    if (actual != expected) {
      throw new IOException(
          String.format(
              Locale.ROOT,
              "%s is damaged in its file %s: CRC32C is %08x instead of %08x",
              id,
              stored,
              actual,
              expected));
    }
  }

  void delete(final int shuffleId, final long mapId) throws IOException {
    Files.deleteIfExists(data(shuffleId, mapId).toPath());
    Files.deleteIfExists(index(shuffleId, mapId).toPath());
  }
}
