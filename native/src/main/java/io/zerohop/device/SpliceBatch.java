package io.zerohop.device;

/**
 * Pieces of columns that are joined in one submission and need more than a copy. These are columns
 * of offsets whose pieces count from different beginnings, and columns of bits whose pieces do not
 * end with a word. Reusable and not thread safe, as {@link CopyBatch}.
 */
public interface SpliceBatch {

  /**
   * Adds 32-bit integers that grow by {@code delta} on their way. Both addresses are multiples of
   * 4.
   */
  void addOffsets(long sourceAddress, long destinationAddress, int count, int delta);

  /**
   * Begins a column of bits, the first in the lowest place of the first 32-bit word. Whole words
   * are written; what is behind the last bit becomes 0. The address is a multiple of 4.
   */
  void beginBits(long destinationAddress);

  /**
   * Adds bits to the column that was begun; zero counts are dropped.
   *
   * @param sourceAddress of the word whose lowest bit is the first, a multiple of 4; 0 for ones
   */
  void addBits(long sourceAddress, int count);

  /** Whether there is nothing to do. */
  boolean isEmpty();

  /** Empties the list so that it can be filled again. */
  void clear();
}
