package io.zerohop.spark.staged;

import io.zerohop.shuffle.MapOutputLease;
import io.zerohop.shuffle.spill.ColdStorage;
import io.zerohop.spark.NativeBytes;
import java.io.File;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.LongAdder;
import java.util.zip.CRC32C;
import java.util.zip.CheckedInputStream;
import org.apache.spark.SparkEnv;
import org.apache.spark.network.buffer.ManagedBuffer;
import org.apache.spark.serializer.SerializerManager;
import org.apache.spark.shuffle.IndexShuffleBlockResolver;
import org.apache.spark.storage.ShuffleBlockId;

/**
 * Map outputs as files in Spark's own format (one data file, one index) in Spark's local
 * directories: those that found no room in memory or had to leave it, and those that somebody must
 * read through Spark's block transfer service. Spark's index resolver serves them, after a look at
 * their checksums, which are kept here: 4 bytes for each partition. Thread safe.
 */
public final class MapOutputFiles implements ColdStorage {
  private final IndexShuffleBlockResolver index;

  /** Checksums of the partitions, as stored, by shuffle and map. */
  private final Map<Integer, Map<Long, int[]>> written = new ConcurrentHashMap<>();

  private final LongAdder bytes = new LongAdder();
  private final Map<String, Object> writing = new ConcurrentHashMap<>();

  public MapOutputFiles(final IndexShuffleBlockResolver index) {
    this.index = index;
  }

  /** Whether this class wrote a file for the map output. */
  public boolean holds(final int shuffleId, final long mapId) {
    return checksums(shuffleId, mapId) != null;
  }

  private int[] checksums(final int shuffleId, final long mapId) {
    return written.getOrDefault(shuffleId, Map.of()).get(mapId);
  }

  /**
   * Makes sure that a block of a file that this class wrote is what was written.
   *
   * @param stored the block, as Spark's resolver found it
   * @throws IOException if it is not, or cannot be read
   */
  public void verify(final ShuffleBlockId id, final ManagedBuffer stored) throws IOException {
    final int[] expected = checksums(id.shuffleId(), id.mapId());
    if (expected == null) {
      return;
    }
    final CRC32C actual = new CRC32C();
    try (InputStream in = new CheckedInputStream(stored.createInputStream(), actual)) {
      in.transferTo(OutputStream.nullOutputStream());
    }
    if ((int) actual.getValue() != expected[id.reduceId()]) {
      throw new IOException(
          String.format(
              "%s is damaged in its file %s: CRC32C is %08x instead of %08x",
              id, stored, (int) actual.getValue(), expected[id.reduceId()]));
    }
  }

  /** Bytes of all map outputs that were written to files, since the start. */
  public long bytes() {
    return bytes.sum();
  }

  /** A temporary file in Spark's local directories for a batch that found no room. */
  public SpilledBatch spill(final int partitions, final PartitionBytes source) throws IOException {
    final SparkEnv env = SparkEnv.get();
    final File file = env.blockManager().diskBlockManager().createTempShuffleBlock()._2();
    return SpilledBatch.write(file, env.serializerManager(), partitions, source);
  }

  /**
   * Writes a map output, compressed and encrypted as Spark's settings say, and commits it.
   *
   * @return the bytes of each partition in the file
   */
  public long[] write(
      final int shuffleId, final long mapId, final int partitions, final PartitionBytes source)
      throws IOException {
    final SerializerManager serializers = SparkEnv.get().serializerManager();
    final File temporary = index.createTempFile(index.getDataFile(shuffleId, mapId));
    try {
      final long[] lengths = new long[partitions];
      final int[] checksums = new int[partitions];
      try (CountingFile out = new CountingFile(temporary)) {
        for (int partition = 0; partition < partitions; partition++) {
          final ShuffleBlockId id = new ShuffleBlockId(shuffleId, mapId, partition);
          final long start = out.bytes();
          try (PartitionOutputStream part =
              new PartitionOutputStream(out, stream -> serializers.wrapStream(id, stream))) {
            source.writeTo(partition, part);
          }
          lengths[partition] = out.bytes() - start;
          checksums[partition] = out.takeChecksum();
        }
        bytes.add(out.bytes());
      }
      index.writeMetadataFileAndCommit(shuffleId, mapId, lengths, new long[0], temporary);
      written.computeIfAbsent(shuffleId, id -> new ConcurrentHashMap<>()).put(mapId, checksums);
      return lengths;
    } finally {
      Files.deleteIfExists(temporary.toPath());
    }
  }

  /** Writes a map output that lies in memory, unless that has been done. */
  @Override
  public void store(final int shuffleId, final long mapId, final MapOutputLease output)
      throws IOException {
    final String key = shuffleId + "_" + mapId;
    try {
      synchronized (writing.computeIfAbsent(key, id -> new Object())) {
        if (!holds(shuffleId, mapId)) {
          final NativeBytes bytes = new NativeBytes();
          write(
              shuffleId,
              mapId,
              output.partitions(),
              (partition, out) ->
                  copyExtents(consumer -> output.forEachExtent(partition, consumer), bytes, out));
        }
      }
    } finally {
      writing.remove(key);
    }
  }

  /** Copies every extent that {@code extents} names to a stream. */
  public static void copyExtents(
      final java.util.function.Consumer<io.zerohop.shuffle.ExtentConsumer> extents,
      final NativeBytes bytes,
      final OutputStream out)
      throws IOException {
    try {
      extents.accept(
          (address, length) -> {
            try {
              bytes.copyTo(address, length, out);
            } catch (final IOException e) {
              throw new UncheckedIOException(e);
            }
          });
    } catch (final UncheckedIOException e) {
      throw e.getCause();
    }
  }

  @Override
  public void drop(final int shuffleId, final long mapId) {
    final Map<Long, int[]> known = written.get(shuffleId);
    if (known != null && known.remove(mapId) != null) {
      index.removeDataByMap(shuffleId, mapId);
    }
  }

  /** Deletes the files of a shuffle. */
  public void unregisterShuffle(final int shuffleId) {
    final Map<Long, int[]> known = written.remove(shuffleId);
    if (known != null) {
      known.keySet().forEach(mapId -> index.removeDataByMap(shuffleId, mapId));
    }
  }
}
