package io.zerohop.spark.outputfiles;

import io.zerohop.device.Crc32c;
import io.zerohop.device.Undo;
import io.zerohop.shuffle.ShuffleNode;
import io.zerohop.shuffle.catalog.MapOutputLease;
import io.zerohop.shuffle.extent.ExtentWriter;
import io.zerohop.shuffle.pool.Tier;
import io.zerohop.shuffle.spill.Evictor.ColdStorage;
import io.zerohop.shuffle.write.MapOutput;
import io.zerohop.shuffle.write.MapOutput.HostBlocks;
import io.zerohop.spark.log.SparkCode;
import io.zerohop.spark.outputfiles.PartitionOutputStream.CountingFile;
import io.zerohop.spark.outputfiles.PartitionOutputStream.PartitionBytes;
import io.zerohop.spark.outputfiles.PartitionOutputStream.Wrapping;
import java.io.BufferedOutputStream;
import java.io.DataOutputStream;
import java.io.File;
import java.io.FileOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.io.UncheckedIOException;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.StandardOpenOption;
import java.util.Arrays;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.LongAdder;
import java.util.function.Function;
import java.util.zip.CRC32C;
import java.util.zip.CheckedInputStream;
import org.apache.spark.SparkEnv;
import org.apache.spark.network.buffer.ManagedBuffer;
import org.apache.spark.serializer.SerializerManager;
import org.apache.spark.storage.ShuffleBlockBatchId;
import org.apache.spark.storage.ShuffleBlockId;
import org.apache.spark.storage.ShuffleDataBlockId;
import org.apache.spark.storage.ShuffleIndexBlockId;
import org.apache.spark.unsafe.Platform;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import scala.Option;

/**
 * Map outputs as files in Spark's format (one data file, one index) in Spark's local directories.
 * They found no room in memory, had to leave it, or are read through Spark's block transfer
 * service. Spark's index resolver serves them, after a look at their checksums, which are kept
 * here: 4 bytes for each partition. Thread safe.
 */
public final class MapOutputFiles implements ColdStorage {
  private static final Logger LOG = LoggerFactory.getLogger(MapOutputFiles.class);

  private static final int WRITERS = 64;

  /** By shuffle and map. */
  private final Map<Integer, Map<Long, OutputFile>> written = new ConcurrentHashMap<>();

  private final LongAdder bytes = new LongAdder();

  /** Held by the thread that writes a map output that others may also want to write. */
  private final Object[] writing = new Object[WRITERS];

  public MapOutputFiles() {
    Arrays.setAll(writing, i -> new Object());
  }

  /** Returns whether this class wrote a file for the map output. */
  public boolean holds(final int shuffleId, final long mapId) {
    return find(shuffleId, mapId) != null;
  }

  /** Shuffles with files of this class. */
  public Set<Integer> shuffles() {
    return Set.copyOf(written.keySet());
  }

  private @Nullable OutputFile find(final int shuffleId, final long mapId) {
    return written.getOrDefault(shuffleId, Map.of()).get(mapId);
  }

  /**
   * Returns the directories in which Spark's resolver finds the files of a map output, if it is
   * given no others.
   */
  public Option<String[]> dirs(
      final int shuffleId, final long mapId, final Option<String[]> otherwise) {
    final OutputFile file = find(shuffleId, mapId);
    return file == null || file.dir() == null ? otherwise : Option.apply(new String[] {file.dir()});
  }

  /**
   * Makes sure that a block of a file that this class wrote is what was written.
   *
   * @param stored the block, as Spark's resolver found it
   * @throws IOException if it is not, or cannot be read
   */
  public void verify(final ShuffleBlockId id, final ManagedBuffer stored) throws IOException {
    final OutputFile file = find(id.shuffleId(), id.mapId());
    if (file != null) {
      file.verify(id, stored);
    }
  }

  /**
   * Verifies each block of a batch.
   *
   * @param find a block as Spark's resolver finds it
   */
  public void verify(
      final ShuffleBlockBatchId batch, final Function<ShuffleBlockId, ManagedBuffer> find)
      throws IOException {
    for (int reduceId = batch.startReduceId(); reduceId < batch.endReduceId(); reduceId++) {
      final ShuffleBlockId id = new ShuffleBlockId(batch.shuffleId(), batch.mapId(), reduceId);
      verify(id, find.apply(id));
    }
  }

  /** Bytes of all map outputs that were written to files, since the start. */
  public long bytes() {
    return bytes.sum();
  }

  /**
   * Begins a map output that goes on here where memory has no room.
   *
   * @param node whose memory it goes to; absent if this executor has none to hold blocks in
   * @param tier of blocks that come from the host
   */
  public MapOutput newOutput(
      final @Nullable ShuffleNode node,
      final int shuffleId,
      final long mapId,
      final int partitions,
      final Tier tier) {
    final SpilledBatches overflow = new SpilledBatches(this, shuffleId, mapId, partitions);
    return node == null
        ? MapOutput.inFiles(shuffleId, mapId, partitions, overflow)
        : node.newMapOutput(shuffleId, mapId, partitions, tier, overflow);
  }

  /**
   * Writes a map output, compressed and encrypted as Spark's settings say, and commits it.
   *
   * @return the bytes of each partition in the file
   * @throws IOException if none of Spark's local directories takes it
   */
  long[] write(
      final int shuffleId, final long mapId, final int partitions, final PartitionBytes source)
      throws IOException {
    final SerializerManager serializers = SparkEnv.get().serializerManager();
    final Wrapping wrapping =
        (partition, out) ->
            serializers.wrapStream(new ShuffleBlockId(shuffleId, mapId, partition), out);
    return write(
        shuffleId,
        mapId,
        partitions,
        (file, lengths, checksums) ->
            CountingFile.write(file, wrapping, source, lengths, checksums));
  }

  /** Writes a data file, and each partition's length and checksum into the arrays of zeros. */
  @FunctionalInterface
  private interface DataFile {
    /** Returns the bytes of all. */
    long write(File file, long[] lengths, int[] checksums) throws IOException;
  }

  /**
   * Writes both files. Spark's resolver would write the index, too, by a method that some vendors'
   * Sparks lack.
   */
  private long[] write(
      final int shuffleId, final long mapId, final int partitions, final DataFile data)
      throws IOException {
    return LocalDirs.firstThatWorks(
        "map output " + mapId + " of shuffle " + shuffleId,
        dir -> {
          final long[] lengths = new long[partitions];
          final OutputFile file = new OutputFile(new int[partitions], dir);
          try (Undo undo = new Undo(() -> file.delete(shuffleId, mapId))) {
            bytes.add(data.write(file.data(shuffleId, mapId), lengths, file.checksums()));
            file.writeIndex(shuffleId, mapId, lengths);
            keep(shuffleId, mapId, file);
            return undo.keep(lengths);
          }
        });
  }

  private void keep(final int shuffleId, final long mapId, final OutputFile file) {
    written.compute(
        shuffleId,
        (id, before) -> {
          final Map<Long, OutputFile> known = before == null ? new ConcurrentHashMap<>() : before;
          known.put(mapId, file);
          return known;
        });
  }

  /** Writes a map output that lies in memory, unless that has been done. */
  @Override
  public void store(final int shuffleId, final long mapId, final MapOutputLease output)
      throws IOException {
    synchronized (writing[Math.floorMod(31 * shuffleId + Long.hashCode(mapId), WRITERS)]) {
      if (!holds(shuffleId, mapId)) {
        if (output.isInHostMemory() && isPlain()) {
          write(
              shuffleId,
              mapId,
              output.partitions(),
              (file, lengths, sums) -> ExtentFile.write(file, output, lengths, sums));
        } else {
          output.checkEntry(); // As each block is: the file has checksums of its own.
          final NativeBytes copier = new NativeBytes();
          write(
              shuffleId,
              mapId,
              output.partitions(),
              (partition, out) -> copier.copy(output::forEachExtent, partition, out));
        }
      }
    }
  }

  /** Returns whether files hold blocks as they are, by Spark's settings. */
  private static boolean isPlain() {
    final SparkEnv env = SparkEnv.get();
    return !env.conf().getBoolean("spark.shuffle.compress", true)
        && !env.serializerManager().encryptionEnabled();
  }

  @Override
  public void drop(final int shuffleId, final long mapId) {
    final OutputFile[] dropped = {null};
    written.computeIfPresent(
        shuffleId,
        (id, known) -> {
          dropped[0] = known.remove(mapId);
          return known.isEmpty() ? null : known;
        });
    if (dropped[0] != null) {
      delete(shuffleId, mapId, dropped[0]);
    }
  }

  /** Deletes the files of a shuffle. */
  public void unregisterShuffle(final int shuffleId) {
    final Map<Long, OutputFile> known = written.remove(shuffleId);
    if (known != null) {
      known.forEach((mapId, file) -> delete(shuffleId, mapId, file));
    }
  }

  private void delete(final int shuffleId, final long mapId, final OutputFile file) {
    try {
      file.delete(shuffleId, mapId);
    } catch (final IOException e) {
      warnNotDeleted(shuffleId, mapId, e);
    }
  }

  /** Warns of a file, complete or temporary, that stays until its folder goes. */
  static void warnNotDeleted(final int shuffleId, final long mapId, final IOException cause) {
    SparkCode.FILE_NOT_DELETED
        .says("cannot delete a file of a map output")
        .at("map output " + mapId + " of shuffle " + shuffleId)
        .because(cause)
        .warn(LOG);
  }

  /**
   * The two files of a map output.
   *
   * @param checksums CRC32C of each partition's bytes, as stored
   * @param dir the local directory that they lie in, if it is not the one that Spark chooses
   */
  record OutputFile(int[] checksums, @Nullable String dir) {
    /** Where the bytes are. */
    File data(final int shuffleId, final long mapId) throws IOException {
      return LocalDirs.file(dir, new ShuffleDataBlockId(shuffleId, mapId, 0).name());
    }

    private File index(final int shuffleId, final long mapId) throws IOException {
      return LocalDirs.file(dir, new ShuffleIndexBlockId(shuffleId, mapId, 0).name());
    }

    /** Writes where each partition begins, and where the last one ends, as Spark reads it. */
    void writeIndex(final int shuffleId, final long mapId, final long[] lengths)
        throws IOException {
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

  /** Writes memory outside the heap to a stream, through one small buffer. Not thread safe. */
  static final class NativeBytes {
    private final byte[] buffer = new byte[64 << 10];

    /** Writes the bytes of one block. */
    void copy(final HostBlocks blocks, final int partition, final OutputStream out)
        throws IOException {
      try {
        blocks.forEachExtent(
            partition,
            (address, length) -> {
              try {
                copy(address, length, out);
              } catch (final IOException e) {
                throw new UncheckedIOException(e);
              }
            });
      } catch (final UncheckedIOException e) {
        throw e.getCause();
      }
    }

    private void copy(final long address, final int length, final OutputStream out)
        throws IOException {
      int done = 0;
      while (done < length) {
        final int part = Math.min(buffer.length, length - done);
        Platform.copyMemory(null, address + done, buffer, Platform.BYTE_ARRAY_OFFSET, part);
        out.write(buffer, 0, part);
        done += part;
      }
    }
  }

  /**
   * A map output's bytes as a file that is neither compressed nor encrypted: the kernel takes them
   * from where they lie, without a copy in between. The checksums that they were written to memory
   * with go along, put together to those of partitions; so what was damaged in memory is found by
   * whoever reads the file.
   */
  static final class ExtentFile {
    private ExtentFile() {}

    /**
     * Writes a map output that is in host memory.
     *
     * @param lengths gets the bytes of each partition
     * @param checksums gets the CRC32C of each
     * @return the bytes of all
     * @throws io.zerohop.shuffle.block.DamagedOutputException if its entry, which has the
     *     checksums, is not as it was written
     */
    static long write(
        final File to, final MapOutputLease output, final long[] lengths, final int[] checksums)
        throws IOException {
      output.checkEntry();
      long bytes = 0;
      try (FileChannel file =
          FileChannel.open(
              to.toPath(),
              StandardOpenOption.CREATE,
              StandardOpenOption.TRUNCATE_EXISTING,
              StandardOpenOption.WRITE)) {
        final ExtentWriter writer = new ExtentWriter(file);
        for (int partition = 0; partition < lengths.length; partition++) {
          append(writer, output, partition, lengths, checksums);
          bytes += lengths[partition];
        }
        writer.flush();
      } catch (final UncheckedIOException e) {
        throw e.getCause();
      }
      return bytes;
    }

    private static void append(
        final ExtentWriter writer,
        final MapOutputLease output,
        final int partition,
        final long[] lengths,
        final int[] checksums) {
      output.forEachSummedExtent(
          partition,
          (address, bytes, summed, known) -> {
            final int sum = summed ? known : Crc32c.of(address, bytes);
            checksums[partition] = Crc32c.join(checksums[partition], sum, bytes);
            lengths[partition] += bytes;
            writer.add(address, bytes);
          });
    }
  }
}
