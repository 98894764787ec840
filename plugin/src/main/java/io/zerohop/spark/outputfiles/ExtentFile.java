package io.zerohop.spark.outputfiles;

import io.zerohop.device.Crc32c;
import io.zerohop.shuffle.catalog.MapOutputLease;
import io.zerohop.shuffle.extent.ExtentWriter;
import java.io.File;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.channels.FileChannel;
import java.nio.file.StandardOpenOption;

/**
 * A map output's bytes as a file that is neither compressed nor encrypted: the kernel takes them
 * from where they lie, without a copy in between. The checksums that they were written to memory
 * with go along, put together to those of partitions; so what was damaged in memory is found by
 * whoever reads the file.
 */
final class ExtentFile {
  private ExtentFile() {}

  /**
   * Writes a map output that is in host memory.
   *
   * @param lengths gets the bytes of each partition
   * @param checksums gets the CRC32C of each
   * @return the bytes of all
   * @throws io.zerohop.shuffle.block.DamagedOutputException if its entry, which has the checksums,
   *     is not as it was written
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
