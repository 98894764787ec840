package io.zerohop.spark.spillfiles;

import java.io.BufferedOutputStream;
import java.io.File;
import java.io.FileOutputStream;
import java.io.IOException;
import java.io.OutputStream;
import java.util.zip.CRC32C;

/** A buffered file that knows how many bytes went in, and their checksum. Not thread safe. */
public final class CountingFile extends OutputStream {
  private static final int BUFFER_BYTES = 256 << 10;

  private final OutputStream out;
  private final CRC32C checksum = new CRC32C();
  private long bytes;

  public CountingFile(final File file) throws IOException {
    out = new BufferedOutputStream(new FileOutputStream(file), BUFFER_BYTES);
  }

  /** Bytes written so far, those in the buffer included. */
  public long bytes() {
    return bytes;
  }

  /** CRC32C of what was written since this was asked last. */
  int takeChecksum() {
    final int value = (int) checksum.getValue();
    checksum.reset();
    return value;
  }

  @Override
  public void write(final int b) throws IOException {
    out.write(b);
    checksum.update(b);
    bytes++;
  }

  @Override
  public void write(final byte[] source, final int offset, final int length) throws IOException {
    out.write(source, offset, length);
    checksum.update(source, offset, length);
    bytes += length;
  }

  @Override
  public void close() throws IOException {
    out.close();
  }
}
