package io.zerohop.shuffle.spill;

import io.zerohop.device.CopyBatch;
import io.zerohop.device.CopyStream;
import io.zerohop.device.ZerohopException;
import io.zerohop.shuffle.catalog.Catalog;
import io.zerohop.shuffle.catalog.Catalog.OwnOutput;
import io.zerohop.shuffle.pool.Devices;
import io.zerohop.shuffle.pool.PoolFullException;
import io.zerohop.shuffle.pool.Region;
import io.zerohop.shuffle.pool.Region.PinnedTarget;
import io.zerohop.shuffle.pool.Tier;
import io.zerohop.shuffle.pool.Tiers;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.function.Predicate;

/** Moves map outputs from GPU memory to host memory, on streams of its own. For one thread. */
final class ToHost {
  private final Devices devices;
  private final Tiers tiers;
  private final Catalog catalog;
  private final Duration limit;

  /**
   * @param limit of the copies of one map output
   */
  ToHost(final Devices devices, final Tiers tiers, final Catalog catalog, final Duration limit) {
    this.devices = devices;
    this.tiers = tiers;
    this.catalog = catalog;
    this.limit = limit;
  }

  /**
   * Moves what a map output has in GPU memory, or a part of that.
   *
   * @param leaves the regions in GPU memory that move
   * @return false if it was freed meanwhile, or its copies are still under way
   * @throws PoolFullException if host memory has no room for it
   * @throws ZerohopException if it cannot be copied; it stays where it is
   */
  boolean move(final OwnOutput output, final Predicate<Region> leaves) {
    if (!output.retainReady(devices.host())) {
      return false;
    }
    final List<Region> fresh = new ArrayList<>();
    final boolean[] underWay = {false};
    boolean moved = false;
    try {
      final List<Region> regions = new ArrayList<>();
      for (final Region region : output.regions()) {
        final boolean moves = leaves.test(region);
        final Region place = moves ? tiers.host().allocate(region.bytes()) : region;
        regions.add(place);
        if (moves) {
          fresh.add(place);
        }
      }
      underWay[0] = true;
      copy(output.regions(), regions, () -> underWay[0] = false);
      moved = catalog.move(output, regions);
      return moved;
    } finally {
      // Memory that a copy may still write or read is never given to others.
      if (!underWay[0]) {
        if (!moved) {
          fresh.forEach(Region::release);
        }
        output.release();
      }
    }
  }

  /**
   * Copies each region to where it is to lie.
   *
   * @param ended runs when no copy is under way any more, also if one has failed
   */
  private void copy(final List<Region> from, final List<Region> to, final Runnable ended) {
    final List<PinnedTarget> targets = new ArrayList<>();
    CopyStream stream = null;
    try {
      stream = devices.streams(Tier.DEVICE).take();
      final CopyBatch batch = stream.newBatch();
      for (int i = 0; i < to.size(); i++) {
        if (to.get(i) != from.get(i)) {
          final long bytes = from.get(i).bytes();
          final PinnedTarget target = PinnedTarget.of(to.get(i), bytes, devices.of(Tier.DEVICE));
          targets.add(target);
          batch.add(from.get(i).address(), target.address(), bytes);
        }
      }
      stream.submit(batch);
      stream.synchronize(limit);
      targets.forEach(PinnedTarget::arrive);
    } finally {
      if (stream != null) {
        stream.close();
      }
      ended.run();
      targets.forEach(PinnedTarget::close);
    }
  }
}
