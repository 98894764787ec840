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

  /**
   * Gives a new segment that is lent to a peer its id. Once it is retired, the peer is to give the
   * segment back.
   *
   * @return as {@link #register}
   */
  long registerLent();

  /**
   * Gives a segment that a peer lends its id here.
   *
   * @return as {@link #register}
   */
  long registerBorrowed();

  /** Tells peers how many bytes they may borrow now. */
  void lendable(long bytes);

  /** Declares that the segment is gone: nothing points into it any more. */
  void retire(long segmentId);
}
