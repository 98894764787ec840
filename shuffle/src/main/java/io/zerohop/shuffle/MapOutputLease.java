package io.zerohop.shuffle;

import io.zerohop.shuffle.catalog.OwnOutput;
import io.zerohop.shuffle.fetch.ExtentInputStream;
import io.zerohop.shuffle.fetch.ExtentList;
import io.zerohop.shuffle.fetch.HostLanding;
import io.zerohop.shuffle.pool.Devices;
import java.io.InputStream;
import java.time.Duration;
import java.util.Queue;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.function.Consumer;

/**
 * A hold on one of this node's own map outputs: its bytes stay in place until the lease is closed,
 * whatever happens to the map output meanwhile. Counted by reference, since holder and owner are
 * one process. Thread safe; the caller owns and closes it.
 */
public final class MapOutputLease implements AutoCloseable {
  private final OwnOutput output;
  private final Devices devices;
  private final Duration limit;
  private final Consumer<MapOutputLease> onClose;
  private final AtomicBoolean closed = new AtomicBoolean();

  /** Copies of blocks on a device that the host cannot read. */
  private final Queue<HostLanding> landed = new ConcurrentLinkedQueue<>();

  MapOutputLease(
      final OwnOutput output,
      final Devices devices,
      final Duration limit,
      final Consumer<MapOutputLease> onClose) {
    this.output = output;
    this.devices = devices;
    this.limit = limit;
    this.onClose = onClose;
  }

  /** Partitions of the map output. */
  public int partitions() {
    return output.partitions();
  }

  /** What of it is not as it was written, as far as checksums say; null if all is well. */
  public String damage() {
    checkOpen();
    return output.damage();
  }

  /** Bytes of a block; 0 if it is empty. */
  public long bytes(final int partition) {
    checkOpen();
    final long[] bytes = {0};
    output.forEachExtent(partition, (address, length, tier) -> bytes[0] += length);
    return bytes[0];
  }

  /**
   * Gives the extents of a block, in order; copies of those that the host cannot read are there
   * during this call only.
   */
  public void forEachExtent(final int partition, final ExtentConsumer consumer) {
    final ExtentList extents = extents(partition);
    if (!extents.hasFar()) {
      extents.forEach(consumer);
      return;
    }
    final HostLanding copies = HostLanding.gather(devices, extents, limit, () -> {});
    try {
      extents.forEach(consumer);
    } finally {
      copies.close();
    }
  }

  private ExtentList extents(final int partition) {
    checkOpen();
    final ExtentList extents = new ExtentList();
    output.forEachExtent(
        partition,
        (address, length, tier) -> extents.add(address, length, !devices.hostAccessible(tier)));
    return extents;
  }

  /** A stream over a block that reads straight from memory; fails once the lease is closed. */
  public InputStream stream(final int partition) {
    final ExtentList extents = extents(partition);
    if (extents.hasFar()) {
      landed.add(HostLanding.gather(devices, extents, limit, () -> {}));
    }
    return new ExtentInputStream(extents, 0, extents.size(), () -> !closed.get());
  }

  /** Ends the hold. Idempotent. */
  @Override
  public void close() {
    if (closed.compareAndSet(false, true)) {
      landed.forEach(HostLanding::close);
      output.release();
      onClose.accept(this);
    }
  }

  private void checkOpen() {
    if (closed.get()) {
      throw new IllegalStateException(
          "the lease on map "
              + output.mapId()
              + " of shuffle "
              + output.shuffleId()
              + " is closed");
    }
  }

  @Override
  public String toString() {
    return "lease on map " + output.mapId() + " of shuffle " + output.shuffleId();
  }
}
