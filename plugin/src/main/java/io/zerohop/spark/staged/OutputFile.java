package io.zerohop.spark.staged;

import java.io.BufferedOutputStream;
import java.io.DataOutputStream;
import java.io.File;
import java.io.FileOutputStream;
import java.io.IOException;
import java.nio.file.Files;
import org.apache.spark.storage.ShuffleDataBlockId;
import org.apache.spark.storage.ShuffleIndexBlockId;

/**
 * The two files of a map output.
 *
 * @param checksums CRC32C of each partition's bytes, as stored
 * @param dir the local directory that they lie in; null if it is the one that Spark chooses
 */
record OutputFile(int[] checksums, String dir) {
  /** Where the bytes are, in a directory that Spark has to be told. */
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

  void delete(final int shuffleId, final long mapId) throws IOException {
    Files.deleteIfExists(data(shuffleId, mapId).toPath());
    Files.deleteIfExists(index(shuffleId, mapId).toPath());
  }
}
