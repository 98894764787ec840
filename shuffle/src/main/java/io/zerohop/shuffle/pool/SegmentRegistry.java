package io.zerohop.shuffle.pool;

/** Names segments and tells peers which of them are still in use. Called under the pool's lock. */
public interface SegmentRegistry {

  /**
   * Gives a new segment its id. Once one that is lent to a peer is retired, the peer is to give the
   * segment back.
   *
   * @param naming makes the id of a slot
   * @return an id that was never used before, or -1 if no more segments can be named now
   */
  long register(Naming naming);

  /** Tells peers how many bytes they may borrow now. */
  void lendable(long bytes);

  /** Declares that the segment is gone: nothing points into it any more. */
  void retire(long segmentId);

  /** Makes ids of one kind of segments, as {@link SegmentIds} does. */
  @FunctionalInterface
  interface Naming {
    long id(long generation, int slot);
  }
}
