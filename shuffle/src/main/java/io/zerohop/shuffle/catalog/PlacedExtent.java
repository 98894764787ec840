package io.zerohop.shuffle.catalog;

import io.zerohop.shuffle.pool.SegmentMemory;

/** Takes an extent of a block together with where it lies and what is known of its bytes. */
@FunctionalInterface
public interface PlacedExtent {

  /**
   * One extent.
   *
   * @param memory the segment it lies in
   * @param offset in the segment
   * @param length in bytes, positive
   * @param checked whether the checksum is one
   */
  void extent(SegmentMemory memory, long offset, int length, boolean checked, int checksum);
}
