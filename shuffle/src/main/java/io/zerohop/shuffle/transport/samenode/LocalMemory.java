package io.zerohop.shuffle.transport.samenode;

import io.zerohop.device.posix.Clock;
import io.zerohop.shuffle.block.BlockPath;
import io.zerohop.shuffle.block.Link;
import io.zerohop.shuffle.catalog.CatalogView;
import io.zerohop.shuffle.catalog.LanePool;
import io.zerohop.shuffle.catalog.RootSegment;
import io.zerohop.shuffle.catalog.RootSegment.RootLayout;
import io.zerohop.shuffle.catalog.RootSegment.RootView;
import io.zerohop.shuffle.pool.SegmentMemory;
import io.zerohop.shuffle.pool.Tier;
import io.zerohop.shuffle.pool.Tiers;
import io.zerohop.shuffle.transport.BlockMemory;
import org.jspecify.annotations.Nullable;

/** This process's own memory, read the same way as a peer's. */
public final class LocalMemory implements BlockMemory {
  private final Tiers tiers;
  private final LanePool lanes;
  private final CatalogView catalog;
  private volatile boolean closed;

  public LocalMemory(
      final RootSegment root, final Tiers tiers, final String self, final Clock clock) {
    this.tiers = tiers;
    this.lanes =
        new LanePool(
            RootLayout.lanes(root.memory()), 0, root.lanes().generation(0), () -> !closed, clock);
    this.catalog =
        new CatalogView(
            new RootView(root.memory(), root.incarnation(), self),
            tiers.host(),
            self,
            root.incarnation());
  }

  @Override
  public BlockPath path() {
    return BlockPath.LOCAL;
  }

  @Override
  public Link link(final Tier tier) {
    return Link.LOCAL;
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
  public @Nullable SegmentMemory blockSegment(final long segmentId) {
    return tiers.resolve(segmentId);
  }

  @Override
  public boolean alive() {
    return true;
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
