package io.zerohop.shuffle.transport.samenode;

import io.zerohop.device.posix.Clock;
import io.zerohop.shuffle.block.BlockPath;
import io.zerohop.shuffle.block.Link;
import io.zerohop.shuffle.catalog.Catalog;
import io.zerohop.shuffle.catalog.CatalogView;
import io.zerohop.shuffle.catalog.LaneTable.LanePool;
import io.zerohop.shuffle.catalog.RootSegment;
import io.zerohop.shuffle.catalog.RootSegment.RootLayout;
import io.zerohop.shuffle.catalog.RootSegment.RootView;
import io.zerohop.shuffle.conf.Config;
import io.zerohop.shuffle.pool.Devices;
import io.zerohop.shuffle.pool.Pool;
import io.zerohop.shuffle.pool.Reclaimer;
import io.zerohop.shuffle.pool.SegmentMemory;
import io.zerohop.shuffle.pool.Tier;
import io.zerohop.shuffle.pool.Tiers;
import io.zerohop.shuffle.transport.BlockMemory;
import org.jspecify.annotations.Nullable;

/**
 * The memory of one executor that peers map, with the index of the blocks in it. This process reads
 * it in the same way as a peer's. Its parts are thread safe. Owns them.
 */
public final class OwnMemory implements BlockMemory {
  private final RootSegment root;
  private final Tiers tiers;
  private final Reclaimer reclaimer;
  private final Catalog index;
  private final LanePool lanes;
  private final CatalogView catalog;
  private volatile boolean frozen;

  /**
   * Creates pools and a catalog behind a root segment.
   *
   * @param root owned once this returns
   * @param self names this executor in messages
   */
  public OwnMemory(
      final RootSegment root,
      final Devices devices,
      final String self,
      final Config conf,
      final Clock clock) {
    this.root = root;
    this.tiers =
        new Tiers(
            pool(root, devices, Tier.HOST, conf, clock),
            devices.hasGpu() ? pool(root, devices, Tier.DEVICE, conf, clock) : null);
    this.reclaimer = new Reclaimer(root.lanes());
    this.index = new Catalog(devices.host(), root, tiers.host(), reclaimer);
    this.lanes =
        new LanePool(
            RootLayout.lanes(root.memory()), 0, root.lanes().generation(0), () -> !frozen, clock);
    this.catalog =
        new CatalogView(
            new RootView(root.memory(), root.incarnation(), self),
            tiers.host(),
            self,
            root.incarnation());
  }

  private static Pool pool(
      final RootSegment root,
      final Devices devices,
      final Tier tier,
      final Config conf,
      final Clock clock) {
    return new Pool(devices.of(tier), tier, devices.blockAccess(), root, conf, clock);
  }

  public RootSegment root() {
    return root;
  }

  public Tiers tiers() {
    return tiers;
  }

  public Reclaimer reclaimer() {
    return reclaimer;
  }

  /** Returns the index of its blocks, by which this process alone changes what readers find. */
  public Catalog index() {
    return index;
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

  /** Returns whether a peer may have some of it mapped. */
  public boolean isShared() {
    return root.lanes().connected() > 0;
  }

  /** Frees what the last reader has passed, and what has been empty for long. */
  public void trim() {
    reclaimer.poll();
    tiers.all().forEach(Pool::trim);
  }

  /** Frees a shuffle's map outputs after their last reader. */
  public void unregister(final int shuffleId) {
    index.unregister(shuffleId);
    reclaimer.poll();
    tiers.overflow().forget(shuffleId);
    catalog.forget(shuffleId);
  }

  /**
   * Lets no byte change any more: peers may go on reading what they have mapped. This process takes
   * no lease any more; once none is open either, the memory may be unmapped.
   */
  public void freeze() {
    tiers.all().forEach(Pool::freeze);
    root.lanes().freeze();
    // In this order: who unregisters a shuffle behind the end leaves it listed, and looks whether
    // leases are open. None may be taken behind that look.
    frozen = true;
    root.end();
  }

  /** Lets no byte change any more, either, with map outputs going to files from now on. */
  public void freezeForFiles() {
    tiers.all().forEach(Pool::freezeForFiles);
    root.lanes().freeze();
  }

  /** Frees everything; nobody reads or writes it any more. */
  public void close() {
    reclaimer.drop();
    try {
      tiers.close();
    } finally {
      root.close();
    }
  }
}
