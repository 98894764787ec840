package io.zerohop.shuffle.transport.samenode;

import java.nio.ByteBuffer;

/**
 * Reads the blocks that an executor has left, in host memory or in files. Thread safe; waits for no
 * more than the disk.
 */
public interface LeftBlocks {

  /** Bytes of all parts of a block but the last, so that one and its headers are within 1 MiB. */
  int PART_BYTES = (1 << 20) - 64;

  /** Returns whether reading a shuffle's blocks waits for a disk. Does not wait. */
  boolean isInFile(int shuffleId);

  /**
   * Returns whether a shuffle's blocks are in GPU memory and being copied from there, so that who
   * wants them is to ask again. The first question has the copy made. Does not wait.
   */
  boolean isBeingCopied(int shuffleId);

  /**
   * Returns the length of a block.
   *
   * @return bytes; negative if the block is not there, or is in memory that the host cannot read
   */
  long bytes(int shuffleId, long mapId, int partition);

  /**
   * Copies a part of a block, and compares it with its checksum. Of a block in memory all of it is
   * compared where the part is its first.
   *
   * @param from offset in the block, a multiple of {@link #PART_BYTES}
   * @param to takes the whole part; its position moves
   * @return whether it was copied: false if it is damaged or no longer there
   */
  boolean read(int shuffleId, long mapId, int partition, long from, ByteBuffer to);
}
