package io.zerohop.spark.spillfiles;

import io.zerohop.device.Crc32c;
import io.zerohop.device.posix.Memory;
import io.zerohop.shuffle.catalog.MapOutputLease;
import java.io.Closeable;
import java.io.File;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.StandardOpenOption;

/**
 * A map output's bytes as a file that is neither compressed nor encrypted: the kernel takes them
 * from where they lie, without a copy in between. The checksums that they were written to memory
 * with go along, put together to those of partitions; so what was damaged in memory is found by
 * whoever reads the file. Not thread safe.
 */
final class ExtentFile implements Closeable {
  private static final int WRITE_BYTES = 256 << 10;

  /** What is smaller is copied, which costs less than one more range of a write. */
  private static final int SMALL_BYTES = 4 << 10;

  private static final int MAX_RANGES = 256;

  private static final ThreadLocal<ByteBuffer> SMALL =
      ThreadLocal.withInitial(() -> ByteBuffer.allocateDirect(WRITE_BYTES + SMALL_BYTES));

  private final FileChannel file;

  /** What is written next, in order, and after it the range that may still grow. */
  private final ByteBuffer[] ranges = new ByteBuffer[MAX_RANGES];

  private final ByteBuffer small = SMALL.get().clear();
  private int count;
  private long waiting;
  private long start;
  private int length;

  /** Whether the last range is the end of the small ones' buffer. */
  private boolean lastIsSmall;

  private ExtentFile(final File file) throws IOException {
    this.file =
        FileChannel.open(
            file.toPath(),
            StandardOpenOption.CREATE,
            StandardOpenOption.TRUNCATE_EXISTING,
            StandardOpenOption.WRITE);
  }

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
    try (ExtentFile file = new ExtentFile(to)) {
      for (int partition = 0; partition < lengths.length; partition++) {
        file.append(output, partition, lengths, checksums);
        bytes += lengths[partition];
      }
      file.flush();
    } catch (final UncheckedIOException e) {
      throw e.getCause();
    }
    return bytes;
  }

  private void append(
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
          add(address, bytes);
        });
  }

  private void add(final long address, final int bytes) {
    for (int done = 0; done < bytes; ) {
      final int step = Math.min(WRITE_BYTES, bytes - done);
      if (length == 0 || address + done != start + length) {
        endRange();
        start = address + done;
      }
      length += step;
      waiting += step;
      done += step;
      if (waiting >= WRITE_BYTES) {
        flush();
      }
    }
  }

  /** Lets the range grow no more. */
  private void endRange() {
    if (length == 0) {
      return;
    }
    final ByteBuffer range = Memory.view(start, length);
    final boolean isSmall = length < SMALL_BYTES;
    length = 0;
    if (!isSmall) {
      ranges[count++] = range;
    } else {
      final int at = small.position();
      small.put(range);
      if (lastIsSmall) {
        ranges[count - 1].limit(small.position());
      } else {
        ranges[count++] = small.duplicate().position(at).limit(small.position());
      }
    }
    lastIsSmall = isSmall;
    if (count == MAX_RANGES) {
      write();
    }
  }

  private void flush() {
    endRange();
    write();
  }

  private void write() {
    try {
      for (int done = 0; done < count; ) {
        file.write(ranges, done, count - done);
        while (done < count && !ranges[done].hasRemaining()) {
          done++;
        }
      }
    } catch (final IOException e) {
      throw new UncheckedIOException(e);
    }
    count = 0;
    waiting = 0;
    lastIsSmall = false;
    small.clear();
  }

  @Override
  public void close() throws IOException {
    file.close();
  }
}
