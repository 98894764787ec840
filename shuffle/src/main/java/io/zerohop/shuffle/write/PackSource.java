package io.zerohop.shuffle.write;

import io.zerohop.shuffle.extent.ExtentConsumer;

/**
 * The bytes that a map task has collected so far, by partition, in its own memory. It is walked
 * more than once while it is packed and must give the same chunks each time. It may own the memory
 * of its chunks: whoever packs it keeps it reachable until their bytes were copied.
 */
public interface PackSource {

  /** Number of partitions; the same as the map output's. */
  int partitions();

  /** Returns whether its chunks lie in memory of the GPU, and not of this process. */
  default boolean onDevice() {
    return false;
  }

  /** Returns whether it knows the checksums of its blocks; only if they lie on the GPU. */
  default boolean hasChecksums() {
    return false;
  }

  /** CRC32C of one partition's bytes; only if it is {@link #hasChecksums}. */
  default int checksum(final int partition) {
    throw new UnsupportedOperationException("its blocks have no checksums");
  }

  /** Gives the chunks of one partition, in order; none if it is empty. */
  void forEachChunk(int partition, ExtentConsumer consumer);
}
