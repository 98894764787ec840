package io.zerohop.spark.rows;

import io.zerohop.spark.rows.MapOutputBuffer.PartitionArena;
import java.util.ArrayDeque;
import java.util.Deque;
import org.apache.spark.unsafe.Platform;

/**
 * Memory pages outside the heap for {@link PartitionArena}s. Pages of the standard size are kept
 * when they come back, up to a bound, because fresh pages cost a fault for every 4 KiB. Thread
 * safe; whoever took a page gives it back.
 */
public final class PagePool implements AutoCloseable {
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
