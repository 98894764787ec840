package io.zerohop.device;

/**
 * Fills a batch with copies, as one copy where each begins at both ends where the one before it
 * ended: many small blocks that lie side by side are few copies. For one thread.
 */
public final class CopyRuns {
  /**
   * Most bytes of a run of several copies. What lies side by side may belong to two allocations,
   * which is all the same to a kernel and not to copy engines, and those get what is larger.
   */
  private static final long MAX_BYTES = 64L << 20;

  private final CopyBatch batch;
  private long source;
  private long destination;
  private long length;

  /** Copies go to this batch, the last of them with {@link #end}. */
  public CopyRuns(final CopyBatch batch) {
    this.batch = batch;
  }

  /** As {@link CopyBatch#add}. */
  public void add(final long sourceAddress, final long destinationAddress, final long bytes) {
    if (source + length == sourceAddress
        && destination + length == destinationAddress
        && length + bytes <= MAX_BYTES) {
      length += bytes;
      return;
    }
    end();
    source = sourceAddress;
    destination = destinationAddress;
    length = bytes;
  }

  /** Adds the last run. */
  public void end() {
    if (length > 0) {
      batch.add(source, destination, length);
      length = 0;
    }
  }
}
