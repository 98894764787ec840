package io.zerohop.shuffle.catalog;

import io.zerohop.device.PeerAccess;
import io.zerohop.device.host.HostDevice;
import io.zerohop.device.posix.Clock;
import io.zerohop.shuffle.catalog.Catalog.OwnOutput;
import io.zerohop.shuffle.catalog.CatalogView.ChunkLayout;
import io.zerohop.shuffle.catalog.EntryCursor.EntryLayout;
import io.zerohop.shuffle.catalog.RootSegment.RootView;
import io.zerohop.shuffle.conf.Config;
import io.zerohop.shuffle.pool.Pool;
import io.zerohop.shuffle.pool.Reclaimer;
import io.zerohop.shuffle.pool.SegmentMemory;
import io.zerohop.shuffle.pool.Tier;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;

/** A catalog on host memory, with map outputs that nothing was written for. */
final class TestCatalog implements AutoCloseable {
  static final long INCARNATION = 0x1234_5678_9abcL;
  static final int SHUFFLE = 7;

  private final HostDevice device = new HostDevice();
  private final RootSegment root = new RootSegment(device, INCARNATION);
  private final Pool pool =
      new Pool(
          device,
          Tier.HOST,
          PeerAccess.READ,
          root,
          Config.defaults().with("pool.size", 64 << 20).with("segment.size", 4 << 20),
          Clock.system());
  private final Reclaimer reclaimer = new Reclaimer(root.lanes());
  private final Catalog catalog = new Catalog(device, root, pool, reclaimer);

  /** What was published of a map output. */
  record Written(long mapId, int partitions, List<BatchImage> batches) {

    /** Whether a cursor on it says of a block what was written. */
    boolean matches(final EntryCursor cursor, final int batch, final int partition) {
      final BatchImage image = batches.get(batch);
      if (!cursor.extent(batch, partition)) {
        return image.length(partition) == 0;
      }
      return cursor.checked()
          && cursor.segmentId() == image.region().memory().id()
          && cursor.offset() == image.region().offset() + image.start(partition)
          && cursor.length() == image.length(partition)
          && cursor.checksum() == image.checksum(partition);
    }
  }

  HostDevice device() {
    return device;
  }

  RootSegment root() {
    return root;
  }

  Pool pool() {
    return pool;
  }

  Reclaimer reclaimer() {
    return reclaimer;
  }

  Catalog catalog() {
    return catalog;
  }

  /** Sees it as a peer does that has looked at nothing yet. */
  CatalogView view() {
    return new CatalogView(
        new RootView(root.memory(), INCARNATION, "test"), pool, "test", INCARNATION);
  }

  private static BatchImage image(final Random random, final int partitions) {
    final BatchImage image = new BatchImage(partitions, true);
    for (int partition = 0; partition < partitions; partition++) {
      image.add(random.nextInt(3) == 0 ? 0 : 1 + random.nextInt(200), random.nextInt());
    }
    return image;
  }

  Written publish(final long mapId, final int partitions, final int batches, final boolean ready) {
    final Random random = new Random(mapId);
    final List<BatchImage> images = new ArrayList<>();
    for (int i = 0; i < batches; i++) {
      final BatchImage image = image(random, partitions);
      image.place(pool.allocate(Math.max(1, image.bytes())));
      images.add(image);
    }
    final OwnOutput output =
        catalog.publish(SHUFFLE, mapId, catalog.registration(SHUFFLE), partitions, images, ready);
    if (!ready) {
      output.release(); // Nothing is on its way.
    }
    return new Written(mapId, partitions, images);
  }

  /** Bytes of a chunk from its first to the last of so many entries. */
  static int usedBytes(final SegmentMemory memory, final int chunk, final int entries) {
    int offset = memory.buffer().getInt(chunk + ChunkLayout.HEAP_OFFSET);
    for (int i = 0; i < entries; i++) {
      offset += memory.buffer().getInt(chunk + offset + EntryLayout.BYTES_OFFSET);
    }
    return offset;
  }

  @Override
  public void close() {
    catalog.unregisterAll();
    reclaimer.poll();
    pool.close();
    root.close();
    device.close();
  }
}
