package io.zerohop.spark.rapids.write;

import io.zerohop.shuffle.extent.ExtentConsumer;
import io.zerohop.shuffle.write.PackSource;

/**
 * The tables of a batch in memory of this process, partition by partition and without gaps. For one
 * thread; owns the memory.
 */
final class HostTables implements AutoCloseable {
  private final long[] starts;
  private final Runnable free;
  private boolean closed;

  /**
   * @param starts where each partition begins, and where the last one ends
   * @param free gives the memory back
   */
  HostTables(final long[] starts, final Runnable free) {
    this.starts = starts;
    this.free = free;
  }

  /** Address of a partition's first byte. */
  long address(final int partition) {
    return starts[partition];
  }

  /** Bytes of a partition. */
  long bytes(final int partition) {
    return starts[partition + 1] - starts[partition];
  }

  /** The tables for who packs them; of use until this is closed. */
  PackSource payload() {
    return new PackSource() {
      @Override
      public int partitions() {
        return starts.length - 1;
      }

      @Override
      public void forEachChunk(final int partition, final ExtentConsumer consumer) {
        consumer.extents(address(partition), bytes(partition));
      }
    };
  }

  /** Idempotent. */
  @Override
  public void close() {
    if (!closed) {
      closed = true;
      free.run();
    }
  }
}
