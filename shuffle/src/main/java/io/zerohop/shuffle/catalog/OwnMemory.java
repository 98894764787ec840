package io.zerohop.shuffle.catalog;

import io.zerohop.device.posix.Clock;
import io.zerohop.shuffle.conf.Config;
import io.zerohop.shuffle.pool.Devices;
import io.zerohop.shuffle.pool.Pool;
import io.zerohop.shuffle.pool.Reclaimer;
import io.zerohop.shuffle.pool.Tier;
import io.zerohop.shuffle.pool.Tiers;

/**
 * The memory of one executor that peers map, with the index of the blocks in it. Its parts are
 * thread safe. Owns them.
 */
public record OwnMemory(RootSegment root, Tiers tiers, Reclaimer reclaimer, Catalog catalog) {

  /** Pools and a catalog behind a root segment, which is owned once this returns. */
  public static OwnMemory behind(
      final RootSegment root, final Devices devices, final Config conf, final Clock clock) {
    final Tiers tiers =
        new Tiers(
            pool(root, devices, Tier.HOST, conf, clock),
            devices.hasGpu() ? pool(root, devices, Tier.DEVICE, conf, clock) : null);
    final Reclaimer reclaimer = new Reclaimer(root.lanes());
    return new OwnMemory(
        root, tiers, reclaimer, new Catalog(devices.host(), root, tiers.host(), reclaimer));
  }

  private static Pool pool(
      final RootSegment root,
      final Devices devices,
      final Tier tier,
      final Config conf,
      final Clock clock) {
    return new Pool(devices.of(tier), tier, devices.blockAccess(), root, conf, clock);
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
    catalog.unregister(shuffleId);
    reclaimer.poll();
    tiers.overflow().forget(shuffleId);
  }

  /** Lets no byte change any more: peers may go on reading what they have mapped. */
  public void freeze() {
    tiers.all().forEach(Pool::freeze);
    root.lanes().freeze();
    root.end();
  }

  /** The same, with map outputs going to files from now on. */
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
