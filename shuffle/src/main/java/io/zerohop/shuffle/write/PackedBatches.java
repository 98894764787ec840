package io.zerohop.shuffle.write;

import io.zerohop.device.CopyBatch;
import io.zerohop.device.CopyRuns;
import io.zerohop.device.CopyStream;
import io.zerohop.device.Crc32c;
import io.zerohop.device.DeviceMemoryException;
import io.zerohop.device.HostBuffer;
import io.zerohop.device.Message;
import io.zerohop.device.Undo;
import io.zerohop.device.ZerohopException;
import io.zerohop.shuffle.block.DamagedOutputException;
import io.zerohop.shuffle.catalog.BatchImage;
import io.zerohop.shuffle.extent.ExtentList;
import io.zerohop.shuffle.extent.ExtentList.ExtentConsumer;
import io.zerohop.shuffle.extent.ExtentList.HostCopies;
import io.zerohop.shuffle.pool.Devices;
import io.zerohop.shuffle.pool.PoolFullException;
import io.zerohop.shuffle.pool.Region;
import io.zerohop.shuffle.pool.Region.PinnedTarget;
import io.zerohop.shuffle.pool.Tier;
import io.zerohop.shuffle.pool.Tiers;
import io.zerohop.shuffle.write.MapOutput.HostForm;
import io.zerohop.shuffle.write.MapOutput.PackSource;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import org.agrona.UnsafeAccess;
import org.agrona.collections.LongArrayList;
import org.jspecify.annotations.Nullable;

/**
 * The batches of one map output in the pools, each in a region of its own, one partition behind the
 * other, and the copies into them, by streams that are opened at the first need. What comes from
 * the host has been copied when a call returns; copies of what lies on the GPU may be under way
 * until {@link #finish} or {@link #end}, or until who they were {@linkplain #handOver handed over}
 * to has seen their end. Belongs to the task's thread, which ends it.
 */
final class PackedBatches {
  private final Devices devices;
  private final Tiers tiers;

  /** Of blocks that come from the host; those of the GPU go to the GPU's pool. */
  private final Tier tier;

  private final Duration limit;
  private final boolean checksum;
  private final int shuffleId;
  private final long mapId;
  private final int partitions;
  private final List<BatchImage> images = new ArrayList<>();

  /** The chunks of the batch that is being packed. */
  private final Walk walk = new Walk();

  /** Packs what comes from the host, and is waited for each time; absent before the first. */
  private @Nullable CopyStream hostCopies;

  /** Packs what lies on the GPU, and is waited for in the end; absent before the first. */
  private @Nullable CopyStream deviceCopies;

  /** Whether copies failed, and those that their stream had yet to make: nothing more is added. */
  private boolean failed;

  /** Whether copies never ended: what they touch can never be used again. */
  private boolean stuck;

  /** Whether a batch of the GPU's lies in host memory. */
  private boolean onHost;

  private long overflowedBytes;

  /**
   * @param tier of blocks that come from the host
   */
  PackedBatches(
      final OwnOutputs node,
      final Tier tier,
      final int shuffleId,
      final long mapId,
      final int partitions) {
    this.devices = node.devices;
    this.tiers = node.tiers;
    this.tier = tier;
    this.limit = node.conf.device().timeout();
    this.checksum = node.conf.checksum();
    this.shuffleId = shuffleId;
    this.mapId = mapId;
    this.partitions = partitions;
  }

  /**
   * Packs one batch, and its headers if they go ahead of its blocks, into a region each.
   *
   * @throws PoolFullException (FALLBACK) if there is no room; earlier batches stay as they are
   * @throws IllegalStateException if copies have failed before
   */
  void append(final @Nullable PackSource headers, final PackSource batch) {
    final BatchImage ahead = headers == null ? null : place(headers);
    try (Undo undo = new Undo()) {
      if (ahead != null) {
        undo.add(ahead.region()::release); // Its copies have ended, as all of the host's.
      }
      final BatchImage blocks = place(batch);
      add(ahead);
      add(blocks);
      undo.done();
    }
  }

  private void add(final @Nullable BatchImage image) {
    if (image != null) {
      images.add(image);
    }
  }

  /** Packs a source into a region of its own, unless it is empty. */
  private @Nullable BatchImage place(final PackSource source) {
    checkUsable();
    final BatchImage image = walk.measure(source);
    if (image.bytes() == 0) {
      return null;
    }
    return source.onDevice() ? placeFromGpu(image) : place(image, tier, false);
  }

  /** In GPU memory, or in host memory if that is full or peers cannot read it in place. */
  private BatchImage placeFromGpu(final BatchImage image) {
    if (devices.peerGpus().unreachable()) {
      try {
        final BatchImage shared = place(image, Tier.HOST, true);
        onHost = true;
        return shared;
      } catch (final PoolFullException full) {
        // The GPU may have room. Then the owner copies what peers ask for.
      }
    }
    try {
      return place(image, Tier.DEVICE, true);
    } catch (final PoolFullException e) {
      final BatchImage overflowed = place(image, Tier.HOST, true);
      onHost = true;
      overflowedBytes += image.bytes();
      tiers.overflow().say(shuffleId, Tier.DEVICE, e);
      tiers.overflow().overflowed(image.bytes());
      return overflowed;
    }
  }

  private BatchImage place(final BatchImage image, final Tier to, final boolean fromGpu) {
    final Region region = tiers.of(to).allocate(image.bytes());
    try (Undo undo =
        new Undo(
            () -> {
              if (!stuck) {
                region.release();
              }
            })) {
      if (fromGpu) {
        copyFromGpu(region, image.bytes());
      } else {
        copyFromHost(region);
      }
      undo.done();
    }
    image.place(region);
    return image;
  }

  private void copyFromGpu(final Region region, final int bytes) {
    try (PinnedTarget target = target(region, bytes)) {
      final CopyStream by = deviceCopies();
      run(by, walk.copies(by, target.address()), target.isStaged());
      target.arrive();
    }
  }

  private PinnedTarget target(final Region region, final long bytes) {
    try {
      return PinnedTarget.of(region, bytes, devices.of(Tier.DEVICE));
    } catch (final DeviceMemoryException e) {
      throw new PoolFullException("no pinned memory to bring a batch to the host", e);
    }
  }

  private void copyFromHost(final Region region) {
    final CopyStream by = hostCopies();
    if (devices.hostAccessible(region.memory())) {
      run(by, walk.copies(by, region.address()), true);
      return;
    }
    // The device reads the host's memory only where it was made for that.
    try (HostBuffer staging = devices.of(region.tier()).hostBuffer(region.bytes())) {
      final CopyBatch copy = by.newBatch();
      copy.add(staging.address(), region.address(), walk.copyTo(staging.address()));
      run(by, copy, true);
    }
  }

  private CopyStream hostCopies() {
    if (hostCopies == null) {
      hostCopies = devices.streams(tier).take();
    }
    return hostCopies;
  }

  private CopyStream deviceCopies() {
    if (deviceCopies == null) {
      deviceCopies = devices.threadStreams().take();
    }
    return deviceCopies;
  }

  /**
   * Enqueues copies, if there are some.
   *
   * @param wait whether to wait for all of the stream
   */
  private void run(final CopyStream by, final @Nullable CopyBatch copies, final boolean wait) {
    boolean done = false;
    try {
      if (copies != null) {
        by.submit(copies);
      }
      if (wait) {
        by.synchronize(limit);
      }
      done = true;
    } finally {
      if (!done) {
        // A copy that is still under way must not meet memory that was freed or given to others.
        // That copies never end is thrown in place of the failure: what frees memory goes by it.
        failed = true;
        close(by);
      }
    }
  }

  private void checkUsable() {
    if (failed) {
      throw new IllegalStateException("copies of this map output failed: it can only be closed");
    }
  }

  /** Returns the batches, in the order of their extents in a block. */
  List<BatchImage> images() {
    return images;
  }

  /** Bytes of each partition. */
  long[] lengths() {
    final long[] lengths = new long[partitions];
    for (final BatchImage image : images) {
      for (int partition = 0; partition < partitions; partition++) {
        lengths[partition] += image.length(partition);
      }
    }
    return lengths;
  }

  /** Returns whether a batch of the GPU's lies in host memory. */
  boolean onHost() {
    return onHost;
  }

  /** Bytes of the GPU's that went to the host, since the GPU's pool was full. */
  long overflowedBytes() {
    return overflowedBytes;
  }

  /** As {@link MapOutput#forEachExtent}. */
  void forEachExtent(final int partition, final ExtentConsumer consumer) {
    final ExtentList extents = new ExtentList();
    for (final BatchImage image : images) {
      final int length = image.length(partition);
      if (length > 0) {
        final Region region = image.region();
        final boolean deviceOnly = !devices.hostAccessible(region.memory());
        extents.add(
            region.address() + image.start(partition),
            length,
            deviceOnly,
            region.memory(),
            image.checksums(),
            image.checksum(partition));
      }
    }
    finish();
    extents.forEachOnHost(
        devices,
        limit,
        () -> {
          final String damage = extents.firstDamage();
          if (damage != null) {
            throw new DamagedOutputException(
                shuffleId, mapId, "partition " + partition + " " + damage);
          }
        },
        consumer);
  }

  /** Copies a batch of the GPU's that was not packed, of any size, to where the host reads it. */
  HostForm toHost(final @Nullable PackSource headers, final PackSource batch) {
    final long[] starts = walk.starts(batch);
    final HostBuffer copy =
        HostCopies.gather(devices, devices.threadStreams(), starts[partitions], limit, walk::addTo);
    return new HostForm(
        headers,
        (partition, consumer) ->
            consumer.extents(
                copy.address() + starts[partition], starts[partition + 1] - starts[partition]),
        copy);
  }

  /** Frees the batches behind the first so many, as if they had not come. */
  void takeBack(final int first) {
    finish();
    final List<BatchImage> last = images.subList(first, images.size());
    last.forEach(image -> image.region().release());
    last.clear();
  }

  /**
   * The stream of copies that may be under way, if there were any.
   *
   * @throws IllegalStateException if some have failed before
   */
  @Nullable CopyStream pending() {
    checkUsable();
    return deviceCopies;
  }

  /** Gives up the stream of copies under way, which is another's from now on. */
  void handOver() {
    deviceCopies = null;
  }

  /**
   * Waits for the copies that are under way.
   *
   * @throws IllegalStateException if some have failed before: what was packed is not there
   */
  void finish() {
    checkUsable();
    if (deviceCopies != null) {
      run(deviceCopies, null, true);
    }
  }

  /**
   * Ends what is under way and gives the streams back.
   *
   * @param then frees what copies may have touched; not run if they never end
   * @throws ZerohopException (FATAL) if they never end, now or before
   */
  void end(final Runnable then) {
    final CopyStream host = hostCopies;
    final CopyStream device = deviceCopies;
    hostCopies = null;
    deviceCopies = null;
    try {
      close(host);
    } finally {
      close(device);
    }
    if (stuck) {
      throw new ZerohopException(
          ZerohopException.Category.FATAL, "copies of a map output never ended");
    }
    then.run();
  }

  /** Closes a stream, after which nothing of it is under way; or never again can be relied on. */
  private void close(final @Nullable CopyStream stream) {
    if (stream == null) {
      return;
    }
    boolean idle = false;
    try {
      stream.close();
      idle = true;
    } finally {
      stuck |= !idle;
    }
  }

  /** One walk over a source: its chunks, and the sizes and checksums of its blocks. Used again. */
  private final class Walk implements ExtentConsumer {
    /** Address and length of each. */
    private final LongArrayList chunks = new LongArrayList();

    private long length;
    private @Nullable Crc32c crc;

    /** Takes the place of the source before. */
    BatchImage measure(final PackSource source) {
      final boolean onDevice = source.onDevice();
      final boolean compute = checksum && !onDevice;
      final boolean take = checksum && onDevice && source.hasChecksums();
      final BatchImage image = new BatchImage(partitions, compute || take);
      chunks.clear();
      for (int partition = 0; partition < partitions; partition++) {
        length = 0;
        crc = compute ? Crc32c.begin() : null;
        source.forEachChunk(partition, this);
        if (length > Integer.MAX_VALUE - (long) image.bytes()) {
          throw new PoolFullException(
              Message.of("a batch of more than 2 GiB fits no segment")
                  .remedy("append smaller batches"),
              null);
        }
        final int taken = take ? source.checksum(partition) : 0;
        image.add((int) length, crc == null ? taken : crc.value());
      }
      return image;
    }

    @Override
    public void extent(final long address, final int bytes) {
      chunks.addLong(address);
      chunks.addLong(bytes);
      length += bytes;
      if (crc != null) {
        crc.update(address, bytes);
      }
    }

    /**
     * The same for a batch of any size.
     *
     * @return where each block begins, counted from the first, and where the last one ends
     */
    long[] starts(final PackSource source) {
      crc = null;
      chunks.clear();
      final long[] starts = new long[partitions + 1];
      for (int partition = 0; partition < partitions; partition++) {
        length = 0;
        source.forEachChunk(partition, this);
        starts[partition + 1] = starts[partition] + length;
      }
      return starts;
    }

    CopyBatch copies(final CopyStream by, final long to) {
      final CopyBatch copies = by.newBatch();
      addTo(copies, to);
      return copies;
    }

    /** Adds copies of all chunks, one behind the other. */
    void addTo(final CopyBatch copies, final long to) {
      final CopyRuns runs = new CopyRuns(copies);
      long target = to;
      for (int i = 0; i < chunks.size(); i += 2) {
        runs.add(chunks.getLong(i), target, chunks.getLong(i + 1));
        target += chunks.getLong(i + 1);
      }
      runs.end();
    }

    /** Copies all chunks on the calling thread; returns their bytes. */
    long copyTo(final long to) {
      long target = to;
      for (int i = 0; i < chunks.size(); i += 2) {
        UnsafeAccess.UNSAFE.copyMemory(chunks.getLong(i), target, chunks.getLong(i + 1));
        target += chunks.getLong(i + 1);
      }
      return target - to;
    }
  }
}
