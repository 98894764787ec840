package io.zerohop.shuffle.pool;

import org.jspecify.annotations.Nullable;

/** Finds a segment by the id that a catalog entry gives. */
@FunctionalInterface
public interface SegmentResolver {

  /**
   * The segment with this id, mapped, if there is one. May map it first, which takes a bounded
   * time; otherwise neither allocates nor blocks.
   */
  @Nullable SegmentMemory resolve(long segmentId);
}
