package io.zerohop.spark.outputfiles;

import java.io.BufferedOutputStream;
import java.io.File;
import java.io.FileOutputStream;
import java.io.FilterOutputStream;
import java.io.IOException;
import java.io.OutputStream;
import java.util.function.UnaryOperator;
import java.util.zip.CRC32C;
import java.util.zip.CheckedOutputStream;
import org.jspecify.annotations.Nullable;

/**
 * One partition's part of a file. The wrapping stream (compression, encryption) begins at the first
 * byte, so that an empty partition takes no bytes at all, and ends with the partition while the
 * file goes on. Not thread safe.
 */
public final class PartitionOutputStream extends OutputStream {
  private final OutputStream file;
  private final UnaryOperator<OutputStream> wrap;

  /** Absent before the first byte. */
  private @Nullable OutputStream wrapped;

  public PartitionOutputStream(final OutputStream file, final UnaryOperator<OutputStream> wrap) {
    this.file = file;
    this.wrap = wrap;
  }

  private OutputStream wrapped() {
    if (wrapped == null) {
      wrapped = wrap.apply(new KeepOpen(file));
    }
    return wrapped;
  }

  @Override
  public void write(final int b) throws IOException {
    wrapped().write(b);
  }

  @Override
  public void write(final byte[] bytes, final int offset, final int length) throws IOException {
    wrapped().write(bytes, offset, length);
  }

  /** Ends the partition; the file stays open. */
  @Override
  public void close() throws IOException {
    if (wrapped != null) {
      wrapped.close();
    }
  }

  /** Source of the plain bytes of partitions, for writing a file. */
  @FunctionalInterface
  interface PartitionBytes {

    /** Writes all bytes of one partition; nothing for an empty one. Leaves the stream open. */
    void writeTo(int partition, OutputStream out) throws IOException;
  }

  /** Compresses or encrypts the bytes of one partition. */
  @FunctionalInterface
  interface Wrapping {
    OutputStream wrap(int partition, OutputStream out);
  }

  private static final class KeepOpen extends FilterOutputStream {
    KeepOpen(final OutputStream out) {
      super(out);
    }

    @Override
    public void write(final byte[] bytes, final int offset, final int length) throws IOException {
      out.write(bytes, offset, length);
    }

    @Override
    public void close() throws IOException {
      flush();
    }
  }

  /** A buffered file that knows how many bytes went in, and their checksum. Not thread safe. */
  public static final class CountingFile extends CheckedOutputStream {
    private static final int BUFFER_BYTES = 256 << 10;

    private long bytes;

    public CountingFile(final File file) throws IOException {
      super(new BufferedOutputStream(new FileOutputStream(file), BUFFER_BYTES), new CRC32C());
    }

    /** Does nothing: partitions end without a write for each, and closing flushes the file. */
    @Override
    public void flush() {}

    /**
     * Writes the partitions of a source to a file, one behind the other.
     *
     * @param lengths gets the bytes of each partition, as stored
     * @param checksums gets the CRC32C of these
     * @return the bytes of all
     */
    static long write(
        final File file,
        final Wrapping wrapping,
        final PartitionBytes source,
        final long[] lengths,
        final int[] checksums)
        throws IOException {
      try (CountingFile out = new CountingFile(file)) {
        for (int i = 0; i < lengths.length; i++) {
          final int partition = i;
          final long start = out.bytes();
          try (PartitionOutputStream part =
              new PartitionOutputStream(out, stream -> wrapping.wrap(partition, stream))) {
            source.writeTo(partition, part);
          }
          lengths[partition] = out.bytes() - start;
          checksums[partition] = out.takeChecksum();
        }
        return out.bytes();
      }
    }

    /** Bytes written so far, those in the buffer included. */
    public long bytes() {
      return bytes;
    }

    /** CRC32C of what was written since this was asked last. */
    private int takeChecksum() {
      final int value = (int) getChecksum().getValue();
      getChecksum().reset();
      return value;
    }

    @Override
    public void write(final int b) throws IOException {
      super.write(b);
      bytes++;
    }

    @Override
    public void write(final byte[] source, final int offset, final int length) throws IOException {
      super.write(source, offset, length);
      bytes += length;
    }
  }
}
