package io.zerohop.spark.rapids.write;

import ai.rapids.cudf.DeviceMemoryBuffer;
import io.zerohop.shuffle.write.PackSource;
import org.jspecify.annotations.Nullable;

/** Blocks that a map task has on the GPU, partition by partition. For its thread. */
interface OutputBatch {

  /** Whether there is none. */
  boolean isEmpty();

  /** Bytes of the blocks on the GPU, without what the host has to say of them. */
  long bytes();

  /**
   * What the host has to say of each block, in its memory; null if the blocks describe themselves.
   */
  @Nullable PackSource headers();

  /** The blocks, where they lie on the GPU. */
  PackSource payload();

  /** Receives bytes of blocks: memory on the GPU, the offset in it, and their place. */
  @FunctionalInterface
  interface Placing {
    void place(DeviceMemoryBuffer from, long offset, long address, long bytes);
  }

  /**
   * Lays the bytes out, partition by partition and without gaps.
   *
   * @param first where the first one is to be
   * @return where each partition begins, and where the last one ends
   */
  long[] layOut(long first, Placing placing);
}
