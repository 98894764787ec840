package io.zerohop.shuffle.write;

import io.zerohop.device.CopyBatch;
import io.zerohop.device.CopyRuns;
import io.zerohop.device.CopyStream;
import io.zerohop.device.DeviceMemoryException;
import io.zerohop.device.HostBuffer;
import io.zerohop.shuffle.pool.Devices;
import io.zerohop.shuffle.pool.PinnedTarget;
import io.zerohop.shuffle.pool.PoolFullException;
import io.zerohop.shuffle.pool.Region;
import io.zerohop.shuffle.pool.Tier;
import io.zerohop.shuffle.write.MapOutputWriter.PackSource;
import java.time.Duration;
import org.agrona.UnsafeAccess;
import org.jspecify.annotations.Nullable;

/**
 * Copies sources of one map task into regions, one partition behind the other, by streams that are
 * opened at the first need. What comes from the host has been copied when a call returns; copies of
 * what lies on the GPU may be under way until {@link #finish} or {@link #end}, or until who they
 * were {@linkplain #handOver handed over} to has seen their end. Belongs to the task's thread,
 * which ends it.
 */
final class Packer {
  private final Devices devices;
  private final Tier tier;
  private final Duration limit;

  /** Packs what comes from the host, and is waited for each time; absent before the first. */
  private @Nullable CopyStream hostCopies;

  /** Packs what lies on the GPU, and is waited for in the end; absent before the first. */
  private @Nullable CopyStream deviceCopies;

  /** Whether copies never ended: what they touch can never be used again. */
  private boolean stuck;

  /**
   * @param tier of blocks that come from the host
   * @param limit longest time for copies
   */
  Packer(final Devices devices, final Tier tier, final Duration limit) {
    this.devices = devices;
    this.tier = tier;
    this.limit = limit;
  }

  /**
   * Packs a source into a region, which has to stay until nothing is under way any more, also if
   * this fails.
   *
   * @throws PoolFullException (FALLBACK) if there is no pinned memory that it would need
   * @throws IllegalStateException if copies from before never ended
   */
  void pack(final PackSource source, final Region region, final int bytes) {
    checkUsable();
    if (source.onDevice()) {
      packFromDevice(source, region, bytes);
    } else {
      packFromHost(source, region);
    }
  }

  private void packFromDevice(final PackSource source, final Region region, final int bytes) {
    try (PinnedTarget target = target(region, bytes)) {
      final CopyStream by = deviceCopies();
      final CopyBatch copies = copies(by, source, target.address(), (address, length) -> address);
      if (target.isStaged()) {
        synchronize(by, copies);
        target.arrive();
      } else {
        by.submit(copies);
      }
    }
  }

  private PinnedTarget target(final Region region, final long bytes) {
    try {
      return PinnedTarget.of(region, bytes, devices.of(Tier.DEVICE));
    } catch (final DeviceMemoryException e) {
      throw new PoolFullException("no pinned memory to bring a batch to the host", bytes, e);
    }
  }

  private void packFromHost(final PackSource source, final Region region) {
    final CopyStream by = hostCopies();
    if (devices.hostAccessible(region.memory())) {
      synchronize(by, copies(by, source, region.address(), (address, length) -> address));
      return;
    }
    // The device reads the host's memory only where it was made for that.
    try (HostBuffer staging = devices.of(region.tier()).hostBuffer(region.bytes())) {
      final long[] next = {staging.address()};
      synchronize(
          by,
          copies(
              by,
              source,
              region.address(),
              (address, length) -> {
                final long at = next[0];
                UnsafeAccess.UNSAFE.copyMemory(address, at, length);
                next[0] += length;
                return at;
              }));
    }
  }

  /** The address at which a device reads bytes of a source. */
  private interface Reachable {
    long address(long address, int length);
  }

  private static CopyBatch copies(
      final CopyStream by, final PackSource source, final long to, final Reachable reachable) {
    final CopyBatch copies = by.newBatch();
    final CopyRuns runs = new CopyRuns(copies);
    final long[] target = {to};
    for (int partition = 0; partition < source.partitions(); partition++) {
      source.forEachChunk(
          partition,
          (address, length) -> {
            runs.add(reachable.address(address, length), target[0], length);
            target[0] += length;
          });
    }
    runs.end();
    return copies;
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

  private void synchronize(final CopyStream by, final CopyBatch copies) {
    guarded(
        by,
        () -> {
          by.submit(copies);
          by.synchronize(limit);
        });
  }

  private void guarded(final CopyStream by, final Runnable step) {
    try {
      step.run();
    } catch (final RuntimeException e) {
      // A copy that is still under way must not meet memory that was freed or given to others.
      close(by);
      throw e;
    }
  }

  /** A stream that could not be closed may have been that of any batch. */
  private void checkUsable() {
    if (stuck) {
      throw new IllegalStateException("copies of this map output never ended");
    }
  }

  /** The stream of copies that may be under way, if there were any. */
  @Nullable CopyStream pending() {
    return deviceCopies;
  }

  /** Gives up the stream of copies under way, which is another's from now on. */
  void handOver() {
    deviceCopies = null;
  }

  /**
   * Waits for the copies that are under way.
   *
   * @throws IllegalStateException if some of them never ended: what was packed is not there
   */
  void finish() {
    checkUsable();
    final CopyStream by = deviceCopies;
    if (by != null) {
      guarded(by, () -> by.synchronize(limit));
    }
  }

  /**
   * Ends what is under way and gives the streams back; the next source opens new ones. Idempotent.
   *
   * @throws io.zerohop.device.ZerohopException (FATAL) if it does not end, see {@link #isStuck}
   */
  void end() {
    final CopyStream host = hostCopies;
    final CopyStream device = deviceCopies;
    hostCopies = null;
    deviceCopies = null;
    try {
      close(host);
    } finally {
      close(device);
    }
  }

  /** Returns whether copies never ended: what they touch can never be used again. */
  boolean isStuck() {
    return stuck;
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
}
