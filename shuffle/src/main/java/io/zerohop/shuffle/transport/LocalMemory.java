package io.zerohop.shuffle.transport;

import io.zerohop.shuffle.Path;
import io.zerohop.shuffle.catalog.CatalogView;
import io.zerohop.shuffle.catalog.LanePool;
import io.zerohop.shuffle.catalog.RootSegment;
import io.zerohop.shuffle.catalog.RootView;
import io.zerohop.shuffle.pool.Pool;
import io.zerohop.shuffle.pool.SegmentMemory;

/** This process's own memory, read the same way as a peer's. */
public final class LocalMemory implements BlockMemory {
  private final Pool blocks;
  private final LanePool lanes;
  private final CatalogView catalog;
  private volatile boolean closed;

  /**
   * @param blocks where blocks lie
   * @param entries where the catalog lies; the same pool on host memory
   */
  public LocalMemory(
      final RootSegment root, final Pool blocks, final Pool entries, final String self) {
    this.blocks = blocks;
    this.lanes = new LanePool(root.memory(), 0, () -> !closed);
    this.catalog =
        new CatalogView(
            new RootView(root.memory(), root.incarnation(), self),
            entries,
            self,
            root.incarnation());
  }

  @Override
  public Path path() {
    return Path.LOCAL;
  }

  @Override
  public LanePool lanes() {
    return lanes;
  }

  @Override
  public CatalogView catalog() {
    return catalog;
  }

  @Override
  public SegmentMemory blockSegment(final long segmentId) {
    return blocks.resolve(segmentId);
  }

  @Override
  public boolean intact() {
    return true;
  }

  /** No lease can be taken any more. Once none is open either, the memory may be unmapped. */
  public void close() {
    closed = true;
  }
}
