package io.zerohop.shuffle.pool;

/** Names segments and tells peers which of them are still in use. Called under the pool's lock. */
public interface SegmentRegistry {

  /**
   * Gives a new segment its id.
   *
   * @param tier where it lies
   * @return an id that was never used before, or -1 if no more segments can be named now
   */
  long register(Tier tier);

  /** Declares that the segment is gone: nothing points into it any more. */
  void retire(long segmentId);
}
