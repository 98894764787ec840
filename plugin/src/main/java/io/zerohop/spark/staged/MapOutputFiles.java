package io.zerohop.spark.staged;

import io.zerohop.shuffle.MapOutputLease;
import io.zerohop.spark.NativeBytes;
import java.io.File;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.LongAdder;
import org.apache.spark.SparkEnv;
import org.apache.spark.serializer.SerializerManager;
import org.apache.spark.shuffle.IndexShuffleBlockResolver;
import org.apache.spark.storage.ShuffleBlockId;

/**
 * Map outputs as files in Spark's own format (one data file, one index) in Spark's local
 * directories: those that found no room in memory, and those that somebody must read through
 * Spark's block transfer service. Spark's index resolver serves them. Thread safe.
 */
public final class MapOutputFiles {
  private final IndexShuffleBlockResolver index;
  private final Map<Integer, Set<Long>> written = new ConcurrentHashMap<>();
  private final LongAdder bytes = new LongAdder();
  private final Map<String, Object> writing = new ConcurrentHashMap<>();

  public MapOutputFiles(final IndexShuffleBlockResolver index) {
    this.index = index;
  }

  /** Whether this class wrote a file for the map output. */
  public boolean holds(final int shuffleId, final long mapId) {
    return written.getOrDefault(shuffleId, Set.of()).contains(mapId);
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
      try (CountingFile out = new CountingFile(temporary)) {
        for (int partition = 0; partition < partitions; partition++) {
          final ShuffleBlockId id = new ShuffleBlockId(shuffleId, mapId, partition);
          final long start = out.bytes();
          try (PartitionOutputStream part =
              new PartitionOutputStream(out, stream -> serializers.wrapStream(id, stream))) {
            source.writeTo(partition, part);
          }
          lengths[partition] = out.bytes() - start;
        }
        bytes.add(out.bytes());
      }
      index.writeMetadataFileAndCommit(shuffleId, mapId, lengths, new long[0], temporary);
      written.computeIfAbsent(shuffleId, id -> ConcurrentHashMap.newKeySet()).add(mapId);
      return lengths;
    } finally {
      Files.deleteIfExists(temporary.toPath());
    }
  }

  /** Writes a map output that lies in memory, unless that has been done; the memory stays. */
  public void materialise(final int shuffleId, final long mapId, final MapOutputLease output)
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
      final java.io.OutputStream out)
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

  /** Deletes the files of a shuffle. */
  public void unregisterShuffle(final int shuffleId) {
    final Set<Long> mapIds = written.remove(shuffleId);
    if (mapIds != null) {
      mapIds.forEach(mapId -> index.removeDataByMap(shuffleId, mapId));
    }
  }
}
