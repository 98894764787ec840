package io.zerohop.shuffle.transport.samenode;

import java.nio.ByteBuffer;

/**
 * Reads the blocks that an executor has left, in host memory or in files. Thread safe; waits for no
 * more than the disk.
 */
public interface LeftBlocks {

  /** Returns whether reading a shuffle's blocks waits for a disk. Does not wait. */
  boolean isInFile(int shuffleId);

  /**
   * Returns the length of a block.
   *
   * @return bytes; negative if the block is not there, or is in memory that the host cannot read
   */
  long bytes(int shuffleId, long mapId, int partition);

  /**
   * Copies a part of a block. The whole block is compared with its checksums where the part is its
   * first.
   *
   * @param from offset in the block
   * @param to takes as much as it has room for; its position moves
   * @return whether it was copied: false if the block is damaged or no longer there
   */
  boolean read(int shuffleId, long mapId, int partition, long from, ByteBuffer to);
}
