package io.zerohop.shuffle.pool;

/** Finds a segment by the id that a catalog entry gives. */
@FunctionalInterface
public interface SegmentResolver {

  /**
   * The segment with this id, mapped; null if there is none. May map it first, which takes a
   * bounded time; otherwise neither allocates nor blocks.
   */
  SegmentMemory resolve(long segmentId);
}
