package io.zerohop.shuffle;

import io.zerohop.shuffle.catalog.Catalog;
import io.zerohop.shuffle.catalog.RootSegment;
import io.zerohop.shuffle.pool.Devices;
import io.zerohop.shuffle.pool.Pool;
import io.zerohop.shuffle.pool.Reclaimer;
import io.zerohop.shuffle.pool.Tier;
import io.zerohop.shuffle.pool.Tiers;

/**
 * The memory of one executor that peers map, and what says where blocks lie in it. Its parts are
 * thread safe. Owns them.
 */
record OwnMemory(RootSegment root, Tiers tiers, Reclaimer reclaimer, Catalog catalog) {

  /** Pools and a catalog behind a root segment, which is owned once this returns. */
  static OwnMemory behind(final RootSegment root, final NodeConfig config, final Devices devices) {
    final Tiers tiers =
        new Tiers(
            pool(root, Tier.HOST, config.poolBytes(), config.segmentBytes(), config, devices),
            devices.hasGpu()
                ? pool(
                    root,
                    Tier.DEVICE,
                    config.devicePoolBytes(),
                    config.deviceSegmentBytes(),
                    config,
                    devices)
                : null);
    final Reclaimer reclaimer = new Reclaimer(root.lanes());
    return new OwnMemory(
        root, tiers, reclaimer, new Catalog(devices.host(), root, tiers.of(Tier.HOST), reclaimer));
  }

  private static Pool pool(
      final RootSegment root,
      final Tier tier,
      final long bytes,
      final long segment,
      final NodeConfig config,
      final Devices devices) {
    return new Pool(
        devices.of(tier), tier, devices.blockAccess(), root, bytes, segment, config.keepEmpty());
  }

  /** Whether a peer may have some of it mapped. */
  boolean isShared() {
    return root.lanes().connected() > 0;
  }

  /** Frees what the last reader has passed, and what has been empty for long. */
  void trim() {
    reclaimer.poll();
    tiers.all().forEach(Pool::trim);
  }

  /** Frees a shuffle's map outputs after their last reader. */
  void unregister(final int shuffleId) {
    catalog.unregister(shuffleId);
    reclaimer.poll();
    tiers.overflow().forget(shuffleId);
  }

  /** Lets no byte change any more: peers may go on reading what they have mapped. */
  void freeze() {
    tiers.all().forEach(Pool::freeze);
    root.lanes().freeze();
  }

  /** The same, with map outputs going to files from now on. */
  void freezeForFiles() {
    tiers.all().forEach(Pool::freezeForFiles);
    root.lanes().freeze();
  }

  /** Frees everything; nobody reads or writes it any more. */
  void close() {
    reclaimer.drop();
    try {
      tiers.close();
    } finally {
      root.close();
    }
  }
}
