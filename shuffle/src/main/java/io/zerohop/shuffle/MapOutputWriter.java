package io.zerohop.shuffle;

import io.zerohop.device.CopyBatch;
import io.zerohop.device.CopyStream;
import io.zerohop.device.Device;
import io.zerohop.device.HostBuffer;
import io.zerohop.device.ZerohopException;
import io.zerohop.shuffle.catalog.BatchImage;
import io.zerohop.shuffle.catalog.Catalog;
import io.zerohop.shuffle.catalog.Crc32c;
import io.zerohop.shuffle.fetch.ExtentList;
import io.zerohop.shuffle.fetch.HostLanding;
import io.zerohop.shuffle.pool.Devices;
import io.zerohop.shuffle.pool.Pool;
import io.zerohop.shuffle.pool.PoolFullException;
import io.zerohop.shuffle.pool.Region;
import io.zerohop.shuffle.pool.Tier;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.function.Consumer;
import org.agrona.UnsafeAccess;

/**
 * One map task's output while it is being written: batch after batch is packed into the pool, then
 * all of it is published at once. Not thread safe; belongs to one task, which closes it.
 *
 * <p>Owns the regions of its batches until {@link #commit} hands them to the catalog.
 */
public final class MapOutputWriter implements AutoCloseable {
  private final Devices devices;
  private final Device device;
  private final Catalog catalog;
  private final Pool pool;
  private final Duration limit;
  private final boolean checksum;
  private final Consumer<MapOutputWriter> onClose;
  private final int shuffleId;
  private final long mapId;
  private final int partitions;
  private final int registration;
  private final CopyStream stream;
  private final CopyBatch copies;
  private final List<BatchImage> batches = new ArrayList<>();

  /** Copies of blocks on a device that the host cannot read. */
  private final List<HostLanding> landed = new ArrayList<>();

  private boolean committed;
  private boolean closed;

  MapOutputWriter(
      final Devices devices,
      final Tier tier,
      final Catalog catalog,
      final Pool pool,
      final NodeConfig config,
      final int shuffleId,
      final long mapId,
      final int partitions,
      final Consumer<MapOutputWriter> onClose) {
    this.devices = devices;
    this.device = devices.of(tier);
    this.catalog = catalog;
    this.pool = pool;
    this.limit = config.requestLimit();
    this.checksum = config.checksum();
    this.onClose = onClose;
    this.shuffleId = shuffleId;
    this.mapId = mapId;
    this.partitions = partitions;
    this.registration = catalog.registration(shuffleId);
    this.stream = devices.streams(tier).take();
    this.copies = stream.newBatch();
  }

  /**
   * Packs one batch into one region. When it returns the source may be used for other things.
   *
   * @throws PoolFullException (FALLBACK) if there is no room; earlier batches stay as they are
   */
  public void append(final PackSource source) {
    checkOpen();
    if (source.partitions() != partitions) {
      throw new IllegalArgumentException(
          "a source of " + source.partitions() + " partitions for an output of " + partitions);
    }
    final BatchImage image = measure(source);
    if (image.bytes() == 0) {
      return;
    }
    final Region region = pool.allocate(image.bytes());
    boolean packed = false;
    try {
      pack(source, region);
      packed = true;
    } finally {
      if (!packed) {
        region.release();
      }
    }
    image.place(region);
    batches.add(image);
  }

  private BatchImage measure(final PackSource source) {
    final BatchImage image = new BatchImage(partitions);
    final Measure measure = new Measure();
    for (int partition = 0; partition < partitions; partition++) {
      measure.length = 0;
      measure.crc = checksum ? Crc32c.begin() : null;
      source.forEachChunk(partition, measure);
      if (measure.length > Integer.MAX_VALUE - (long) image.bytes()) {
        throw new PoolFullException(
            "a batch of more than 2 GiB fits no segment; append smaller batches",
            measure.length,
            null);
      }
      image.add((int) measure.length, checksum ? measure.crc.value() : 0);
    }
    return image;
  }

  private void pack(final PackSource source, final Region region) {
    if (device.hostAccessible()) {
      pack(source, region, (address, length) -> address);
      return;
    }
    // The device reads the host's memory only where it was made for that.
    try (HostBuffer staging = device.hostBuffer(region.bytes())) {
      final long[] next = {staging.address()};
      pack(
          source,
          region,
          (address, length) -> {
            final long at = next[0];
            UnsafeAccess.UNSAFE.copyMemory(address, at, length);
            next[0] += length;
            return at;
          });
    }
  }

  /** Where the device finds bytes of the host. */
  private interface Reachable {
    long address(long address, int length);
  }

  private void pack(final PackSource source, final Region region, final Reachable reachable) {
    copies.clear();
    final long[] target = {region.address()};
    for (int partition = 0; partition < partitions; partition++) {
      source.forEachChunk(
          partition,
          (address, length) -> {
            copies.add(reachable.address(address, length), target[0], length);
            target[0] += length;
          });
    }
    stream.submit(copies);
    try {
      stream.synchronize(limit);
    } catch (final RuntimeException e) {
      // A copy that is still under way must not meet memory that was freed or given to others.
      stream.close();
      throw e;
    }
  }

  /** Gives the extents that a block has in the batches so far, in order. */
  public void forEachExtent(final int partition, final ExtentConsumer consumer) {
    checkOpen();
    final ExtentList extents = new ExtentList();
    for (final BatchImage batch : batches) {
      final int length = batch.length(partition);
      if (length > 0) {
        final long address = batch.region().address() + batch.start(partition);
        extents.add(address, length, 0, !device.hostAccessible());
      }
    }
    if (extents.hasFar()) {
      landed.add(HostLanding.gather(devices, extents, limit, () -> {}));
    }
    extents.forEach(consumer);
  }

  /** Bytes of all batches so far. */
  public long bytes() {
    long bytes = 0;
    for (final BatchImage batch : batches) {
      bytes += batch.bytes();
    }
    return bytes;
  }

  /**
   * Publishes the map output: from now on readers find it, all of it complete.
   *
   * @return bytes of each partition
   * @throws PoolFullException (FALLBACK) if the catalog has no room; the batches stay readable here
   * @throws ZerohopException (RETRY) if the shuffle was unregistered meanwhile
   */
  public long[] commit() {
    checkOpen();
    final long[] lengths = new long[partitions];
    for (final BatchImage batch : batches) {
      for (int partition = 0; partition < partitions; partition++) {
        lengths[partition] += batch.length(partition);
      }
    }
    catalog.publish(shuffleId, mapId, registration, partitions, checksum, batches);
    committed = true;
    close();
    return lengths;
  }

  /** Frees what was written unless it was committed. Idempotent. */
  @Override
  public void close() {
    if (closed) {
      return;
    }
    closed = true;
    try {
      landed.forEach(HostLanding::close);
      stream.close();
    } finally {
      if (!committed) {
        batches.forEach(batch -> batch.region().release());
      }
      onClose.accept(this);
    }
  }

  private void checkOpen() {
    if (closed) {
      throw new IllegalStateException("the writer of " + this + " is closed");
    }
  }

  @Override
  public String toString() {
    return "map " + mapId + " of shuffle " + shuffleId;
  }

  private static final class Measure implements ExtentConsumer {
    private long length;
    private Crc32c crc;

    @Override
    public void extent(final long address, final int bytes) {
      length += bytes;
      if (crc != null) {
        crc.update(address, bytes);
      }
    }
  }
}
