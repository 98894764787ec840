package io.zerohop.shuffle.transport.samenode;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.MappedByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.channels.FileLock;
import java.nio.channels.ReadableByteChannel;
import java.nio.channels.WritableByteChannel;

/** A file of which a test sees what is read, and does something before each write. */
final class WatchedFile extends FileChannel {
  private final FileChannel file;
  private final Runnable beforeWrite;
  private long readBytes;
  private long writtenBytes;

  WatchedFile(final FileChannel file, final Runnable beforeWrite) {
    this.file = file;
    this.beforeWrite = beforeWrite;
  }

  /** Bytes that were read since this was asked last. */
  long takeReadBytes() {
    final long bytes = readBytes;
    readBytes = 0;
    return bytes;
  }

  long writtenBytes() {
    return writtenBytes;
  }

  private int read(final int count) {
    readBytes += Math.max(0, count);
    return count;
  }

  private long written(final long count) {
    writtenBytes += count;
    return count;
  }

  @Override
  public int read(final ByteBuffer to) throws IOException {
    return read(file.read(to));
  }

  @Override
  public long read(final ByteBuffer[] to, final int offset, final int length) {
    throw new UnsupportedOperationException();
  }

  @Override
  public int read(final ByteBuffer to, final long position) throws IOException {
    return read(file.read(to, position));
  }

  @Override
  public int write(final ByteBuffer from) throws IOException {
    beforeWrite.run();
    return (int) written(file.write(from));
  }

  @Override
  public long write(final ByteBuffer[] from, final int offset, final int length)
      throws IOException {
    beforeWrite.run();
    return written(file.write(from, offset, length));
  }

  @Override
  public int write(final ByteBuffer from, final long position) throws IOException {
    beforeWrite.run();
    return (int) written(file.write(from, position));
  }

  @Override
  public long position() throws IOException {
    return file.position();
  }

  @Override
  public FileChannel position(final long position) throws IOException {
    file.position(position);
    return this;
  }

  @Override
  public long size() throws IOException {
    return file.size();
  }

  @Override
  public FileChannel truncate(final long size) throws IOException {
    file.truncate(size);
    return this;
  }

  @Override
  public void force(final boolean metadata) throws IOException {
    file.force(metadata);
  }

  @Override
  public long transferTo(final long position, final long count, final WritableByteChannel to) {
    throw new UnsupportedOperationException();
  }

  @Override
  public long transferFrom(final ReadableByteChannel from, final long position, final long count) {
    throw new UnsupportedOperationException();
  }

  @Override
  public MappedByteBuffer map(final MapMode mode, final long position, final long size) {
    throw new UnsupportedOperationException();
  }

  @Override
  public FileLock lock(final long position, final long size, final boolean shared) {
    throw new UnsupportedOperationException();
  }

  @Override
  public FileLock tryLock(final long position, final long size, final boolean shared) {
    throw new UnsupportedOperationException();
  }

  @Override
  protected void implCloseChannel() throws IOException {
    file.close();
  }
}
