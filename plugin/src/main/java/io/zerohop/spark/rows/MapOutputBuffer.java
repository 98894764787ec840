package io.zerohop.spark.rows;

import io.zerohop.shuffle.extent.ExtentList.ExtentConsumer;
import io.zerohop.shuffle.write.MapOutputWriter.PackSource;
import io.zerohop.spark.spillfiles.OverflowingOutput;
import java.io.IOException;
import java.io.OutputStream;
import java.util.Arrays;
import org.apache.spark.unsafe.Platform;

/**
 * The output of one map task while it is written: records are collected in an arena, and a full
 * arena is a batch of the output.
 *
 * <p>Belongs to one task thread. {@link #close()} frees everything that was not committed.
 */
final class MapOutputBuffer implements AutoCloseable {

  private final PartitionArena arena;
  private final OverflowingOutput output;
  private long packNanos;

  /** A new output; both are owned from now on. */
  MapOutputBuffer(final PartitionArena arena, final OverflowingOutput output) {
    this.arena = arena;
    this.output = output;
  }

  /** Reserves contiguous bytes at the end of a partition; the caller fills all of them. */
  long reserve(final int partition, final int bytes) throws IOException {
    final long at = arena.reserve(partition, bytes);
    if (at != 0) {
      return at;
    }
    flush();
    return arena.reserve(partition, bytes);
  }

  /** Appends bytes that may be cut anywhere. */
  void append(final int partition, final byte[] source, final int offset, final int length)
      throws IOException {
    int done = arena.append(partition, source, offset, length);
    while (done < length) {
      flush();
      done += arena.append(partition, source, offset + done, length - done);
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

  private void flush() throws IOException {
    final long start = System.nanoTime();
    try {
      if (!pack()) {
        output.spill(arena);
        arena.reset();
      }
    } finally {
      packNanos += System.nanoTime() - start;
    }
  }

  /** Packs the arena into memory; false when that has no room. */
  private boolean pack() {
    final boolean packed = output.pack(arena);
    if (packed) {
      arena.reset();
    }
    return packed;
  }

  /**
   * Completes the output.
   *
   * @return the bytes of each partition, as stored
   */
  long[] commit() throws IOException {
    final long start = System.nanoTime();
    try {
      if (!arena.isEmpty()) {
        pack();
      }
      return output.commit(arena);
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
  public void close() throws IOException {
    arena.close();
    output.close();
  }

  /**
   * The bytes of one batch of a map output, gathered per partition in memory outside the heap. Each
   * partition is a list of chunks; chunks double from {@value #FIRST_CHUNK} to {@value #LAST_CHUNK}
   * bytes, so that thousands of small partitions stay small and large ones have few pieces to pack.
   *
   * <p>What is reserved in one call is contiguous, and stays so when the batch is packed.
   *
   * <p>Belongs to one task thread; {@link #close()} returns all memory to the pool.
   */
  static final class PartitionArena implements PackSource, AutoCloseable {
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

    /**
     * An empty arena.
     *
     * @param pages where memory comes from
     * @param partitions reduce partitions of the shuffle
     * @param limitBytes when to ask for a flush; one reservation may exceed it
     */
    PartitionArena(final PagePool pages, final int partitions, final long limitBytes) {
      this.pages = pages;
      this.limitBytes = limitBytes;
      this.pageBytesWanted = Math.min(PagePool.PAGE_BYTES, limitBytes);
      position = new long[partitions];
      limit = new long[partitions];
      firstChunk = new int[partitions];
      lastChunk = new int[partitions];
      Arrays.fill(firstChunk, NONE);
      Arrays.fill(lastChunk, NONE);
    }

    /**
     * Reserves contiguous bytes at the end of a partition; the caller fills all of them.
     *
     * @return their address, or 0 when the batch must be flushed first
     */
    long reserve(final int partition, final int bytes) {
      final long at = position[partition];
      if (limit[partition] - at >= bytes) {
        position[partition] = at + bytes;
        return at;
      }
      return reserveInNewChunk(partition, bytes);
    }

    /**
     * Appends bytes that may be cut anywhere.
     *
     * @return how many were taken; fewer than {@code length} when the batch must be flushed first
     */
    int append(final int partition, final byte[] source, final int offset, final int length) {
      int done = 0;
      while (done < length) {
        final long room = limit[partition] - position[partition];
        final int part = (int) Math.min(length - done, room > 0 ? room : LAST_CHUNK);
        final long at = reserve(partition, part);
        if (at == 0) {
          break;
        }
        Platform.copyMemory(
            source, Platform.BYTE_ARRAY_OFFSET + (long) offset + done, null, at, part);
        done += part;
      }
      return done;
    }

    private long reserveInNewChunk(final int partition, final int bytes) {
      final int last = lastChunk[partition];
      int wanted = FIRST_CHUNK;
      if (last != NONE) {
        wanted =
            Math.min(LAST_CHUNK, 2 * (int) Math.min(LAST_CHUNK, chunkCapacity(partition, last)));
      }
      final int capacity = Math.max(wanted, bytes);
      final long start = carve(capacity);
      if (start == 0) {
        return 0;
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

    boolean isEmpty() {
      return chunks == 0;
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
    void reset() {
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
    }
  }
}
