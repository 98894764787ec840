package io.zerohop.spark.rows;

import io.zerohop.shuffle.extent.ExtentList.ExtentConsumer;
import io.zerohop.shuffle.write.MapOutput;
import io.zerohop.shuffle.write.MapOutput.PackSource;
import java.io.IOException;
import java.io.OutputStream;
import java.util.ArrayDeque;
import java.util.Arrays;
import java.util.Deque;
import java.util.function.Supplier;
import org.apache.spark.unsafe.Platform;

/**
 * The records of one map task on their way into its output: gathered by partition in memory outside
 * the heap, which is a batch of the output when it is full. Each partition is a list of chunks;
 * chunks double from {@value #FIRST_CHUNK} to {@value #LAST_CHUNK} bytes, so that thousands of
 * small partitions stay small and large ones have few pieces to pack.
 *
 * <p>What is reserved in one call is contiguous, and stays so when the batch is packed.
 *
 * <p>Belongs to one task thread; {@link #close()} frees everything that was not committed, and
 * returns all memory to the pool.
 */
public final class MapOutputBuffer implements PackSource, AutoCloseable {

  static final int FIRST_CHUNK = 256;
  static final int LAST_CHUNK = 32 << 10;
  private static final int NONE = -1;

  private final PagePool pages;
  private final long limitBytes;
  private final long pageBytesWanted;

  private final long[] position;
  private final long[] limit;
  private final int[] firstChunk;
  private final int[] lastChunk;

  private long[] chunkStart = new long[64];
  private int[] chunkLength = new int[64];
  private int[] nextChunk = new int[64];
  private int chunks;

  private long[] pageAddress = new long[8];
  private long[] pageBytes = new long[8];
  private int pageCount;
  private int pagesInUse;
  private long bytesInUse;
  private long bump;
  private long bumpEnd;

  private final MapOutput output;
  private long packNanos;

  /**
   * An empty buffer.
   *
   * @param pages where memory comes from
   * @param partitions reduce partitions of the shuffle
   * @param limitBytes when a batch is full; one reservation may exceed it
   * @param output begins the output, which is owned from now on
   */
  MapOutputBuffer(
      final PagePool pages,
      final int partitions,
      final long limitBytes,
      final Supplier<MapOutput> output) {
    this.pages = pages;
    this.limitBytes = limitBytes;
    this.pageBytesWanted = Math.min(PagePool.PAGE_BYTES, limitBytes);
    position = new long[partitions];
    limit = new long[partitions];
    firstChunk = new int[partitions];
    lastChunk = new int[partitions];
    Arrays.fill(firstChunk, NONE);
    Arrays.fill(lastChunk, NONE);
    this.output = output.get();
  }

  /**
   * Reserves contiguous bytes at the end of a partition; the caller fills all of them.
   *
   * @return their address
   */
  long reserve(final int partition, final int bytes) throws IOException {
    final long at = position[partition];
    if (limit[partition] - at >= bytes) {
      position[partition] = at + bytes;
      return at;
    }
    return reserveInNewChunk(partition, bytes);
  }

  /** Appends bytes that may be cut anywhere. */
  void append(final int partition, final byte[] source, final int offset, final int length)
      throws IOException {
    int done = 0;
    while (done < length) {
      final long room = limit[partition] - position[partition];
      final int part = (int) Math.min(length - done, room > 0 ? room : LAST_CHUNK);
      final long at = reserve(partition, part);
      Platform.copyMemory(
          source, Platform.BYTE_ARRAY_OFFSET + (long) offset + done, null, at, part);
      done += part;
    }
  }

  /** A stream that appends to a partition; closing it has no effect. */
  OutputStream stream(final int partition) {
    return new OutputStream() {
      private final byte[] single = new byte[1];

      @Override
      public void write(final int b) throws IOException {
        single[0] = (byte) b;
        append(partition, single, 0, 1);
      }

      @Override
      public void write(final byte[] bytes, final int offset, final int length) throws IOException {
        append(partition, bytes, offset, length);
      }
    };
  }

  private long reserveInNewChunk(final int partition, final int bytes) throws IOException {
    final int last = lastChunk[partition];
    int wanted = FIRST_CHUNK;
    if (last != NONE) {
      wanted = Math.min(LAST_CHUNK, 2 * (int) Math.min(LAST_CHUNK, chunkCapacity(partition, last)));
    }
    final int capacity = Math.max(wanted, bytes);
    final long start = carve(capacity);
    if (start == 0) {
      flush();
      return reserveInNewChunk(partition, bytes); // Which an empty batch takes, whatever its size.
    }
    if (last != NONE) {
      chunkLength[last] = (int) (position[partition] - chunkStart[last]);
    }
    final int chunk = newChunk(start);
    if (last == NONE) {
      firstChunk[partition] = chunk;
    } else {
      nextChunk[last] = chunk;
    }
    lastChunk[partition] = chunk;
    position[partition] = start + bytes;
    limit[partition] = start + capacity;
    return start;
  }

  private long chunkCapacity(final int partition, final int last) {
    return limit[partition] - chunkStart[last];
  }

  private long carve(final int bytes) {
    if (bumpEnd - bump < bytes && !nextPage(bytes)) {
      return 0;
    }
    final long start = bump;
    // Rows are made of 8-byte words behind a 4-byte length; aligned chunks keep copies fast.
    bump += (bytes + 7) & ~7;
    return start;
  }

  private boolean nextPage(final int bytes) {
    final long needed = Math.max(pageBytesWanted, (bytes + 7L) & ~7L);
    if (bytesInUse > 0 && bytesInUse + needed > limitBytes) {
      return false;
    }
    if (pagesInUse < pageCount && pageBytes[pagesInUse] < needed) {
      releasePagesFrom(pagesInUse);
    }
    if (pagesInUse == pageCount) {
      if (pageCount == pageAddress.length) {
        pageAddress = Arrays.copyOf(pageAddress, 2 * pageCount);
        pageBytes = Arrays.copyOf(pageBytes, 2 * pageCount);
      }
      pageAddress[pageCount] = pages.take(needed);
      pageBytes[pageCount] = needed;
      pageCount++;
    }
    bump = pageAddress[pagesInUse];
    bumpEnd = bump + pageBytes[pagesInUse];
    bytesInUse += pageBytes[pagesInUse];
    pagesInUse++;
    return true;
  }

  private int newChunk(final long start) {
    if (chunks == chunkStart.length) {
      chunkStart = Arrays.copyOf(chunkStart, 2 * chunks);
      chunkLength = Arrays.copyOf(chunkLength, 2 * chunks);
      nextChunk = Arrays.copyOf(nextChunk, 2 * chunks);
    }
    chunkStart[chunks] = start;
    chunkLength[chunks] = 0;
    nextChunk[chunks] = NONE;
    return chunks++;
  }

  private void flush() throws IOException {
    final long start = System.nanoTime();
    try {
      output.append(this);
      reset();
    } finally {
      packNanos += System.nanoTime() - start;
    }
  }

  /**
   * Completes the output.
   *
   * @return the bytes of each partition, as stored
   */
  long[] commit() throws IOException {
    final long start = System.nanoTime();
    try {
      return output.commit(chunks == 0 ? null : this);
    } finally {
      packNanos += System.nanoTime() - start;
    }
  }

  /** Nanoseconds spent on packing and on files. */
  long packNanos() {
    return packNanos;
  }

  /** Bytes that went to temporary files. */
  long spilledBytes() {
    return output.spilledBytes();
  }

  @Override
  public int partitions() {
    return position.length;
  }

  @Override
  public void forEachChunk(final int partition, final ExtentConsumer consumer) {
    final int last = lastChunk[partition];
    for (int chunk = firstChunk[partition]; chunk != NONE; chunk = nextChunk[chunk]) {
      final int length =
          chunk == last ? (int) (position[partition] - chunkStart[chunk]) : chunkLength[chunk];
      if (length > 0) {
        consumer.extent(chunkStart[chunk], length);
      }
    }
  }

  /** Forgets all bytes; the memory stays for the next batch. */
  private void reset() {
    Arrays.fill(firstChunk, NONE);
    Arrays.fill(lastChunk, NONE);
    Arrays.fill(position, 0);
    Arrays.fill(limit, 0);
    chunks = 0;
    pagesInUse = 0;
    bytesInUse = 0;
    bump = 0;
    bumpEnd = 0;
  }

  private void releasePagesFrom(final int first) {
    while (pageCount > first) {
      pageCount--;
      pages.give(pageAddress[pageCount], pageBytes[pageCount]);
    }
  }

  @Override
  public void close() {
    reset();
    releasePagesFrom(0);
    output.close();
  }

  /**
   * Memory pages outside the heap for buffers. Pages of the standard size are kept when they come
   * back, up to a bound, because fresh pages cost a fault for every 4 KiB. Thread safe; whoever
   * took a page gives it back.
   */
  public static final class PagePool implements AutoCloseable {
    /** The standard size in bytes. */
    static final int PAGE_BYTES = 1 << 20;

    private final long keptBytesLimit;
    private final Deque<Long> kept = new ArrayDeque<>();
    private long outstandingBytes;
    private boolean closed;

    /**
     * A pool.
     *
     * @param keptBytesLimit most bytes of unused pages to keep
     */
    public PagePool(final long keptBytesLimit) {
      this.keptBytesLimit = keptBytesLimit;
    }

    /** Takes memory; its content is undefined. */
    long take(final long bytes) {
      synchronized (this) {
        outstandingBytes += bytes;
        if (bytes == PAGE_BYTES && !kept.isEmpty()) {
          return kept.pop();
        }
      }
      return Platform.allocateMemory(bytes);
    }

    /** Gives memory back; {@code bytes} is what it was taken with. */
    void give(final long address, final long bytes) {
      synchronized (this) {
        outstandingBytes -= bytes;
        if (!closed && bytes == PAGE_BYTES && (kept.size() + 1L) * PAGE_BYTES <= keptBytesLimit) {
          kept.push(address);
          return;
        }
      }
      Platform.freeMemory(address);
    }

    /** Bytes that are taken now. */
    public synchronized long outstandingBytes() {
      return outstandingBytes;
    }

    /** Frees the kept pages; pages that come back later are freed at once. */
    @Override
    public synchronized void close() {
      closed = true;
      kept.forEach(Platform::freeMemory);
      kept.clear();
    }
  }
}
