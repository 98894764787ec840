package io.zerohop.shuffle.catalog;

import io.zerohop.shuffle.block.DamagedOutputException;
import io.zerohop.shuffle.catalog.Catalog.OwnOutput;
import io.zerohop.shuffle.extent.ExtentList;
import io.zerohop.shuffle.extent.ExtentList.ExtentConsumer;
import io.zerohop.shuffle.extent.ExtentList.HostCopies;
import io.zerohop.shuffle.pool.Devices;
import java.io.InputStream;
import java.time.Duration;
import java.util.Queue;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;

/**
 * A lease on one of this node's own map outputs: its bytes stay in place until the lease is closed.
 * Counted by reference, since holder and owner are one process. Thread safe; the caller owns and
 * closes it.
 */
public final class MapOutputLease implements AutoCloseable {
  private final OwnOutput output;
  private final Devices devices;
  private final Duration limit;
  private final Consumer<MapOutputLease> onClose;
  private final AtomicBoolean closed = new AtomicBoolean();

  /** Copies of blocks on a device that the host cannot read. */
  private final Queue<HostCopies> copies = new ConcurrentLinkedQueue<>();

  public MapOutputLease(
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

  /**
   * Makes sure that it is as it was written, as far as checksums say. What lies in memory that the
   * host cannot read is looked at when it is copied to the host.
   *
   * @throws DamagedOutputException if it is not
   */
  public void checkIntact() {
    checkEntry();
    for (int partition = 0; partition < output.partitions(); partition++) {
      checkBlock(partition);
    }
  }

  /** The same for one block, and the entry. */
  public void checkIntact(final int partition) {
    checkEntry();
    checkBlock(partition);
  }

  /** The same for its entry alone, for those who let the blocks' checksums go along. */
  public void checkEntry() {
    checkOpen();
    refuse(output.entryDamage());
  }

  private void checkBlock(final int partition) {
    check(partition, extents(partition));
  }

  private void check(final int partition, final ExtentList extents) {
    final String damage = extents.firstDamage();
    refuse(damage == null ? null : "partition " + partition + " " + damage);
  }

  private void refuse(final @Nullable String damage) {
    if (damage != null) {
      throw new DamagedOutputException(output.shuffleId(), output.mapId(), damage);
    }
  }

  /** Bytes of a block; 0 if it is empty. */
  public long bytes(final int partition) {
    checkOpen();
    final long[] bytes = {0};
    output.forEachExtent(partition, (extent, memory) -> bytes[0] += extent.length());
    return bytes[0];
  }

  /**
   * Gives the extents of a block, in order; copies of those that the host cannot read are there
   * during this call only.
   *
   * @throws DamagedOutputException if one of them is not what was written
   */
  public void forEachExtent(final int partition, final ExtentConsumer consumer) {
    final ExtentList extents = extents(partition);
    extents.forEachOnHost(devices, limit, () -> check(partition, extents), consumer);
  }

  private ExtentList extents(final int partition) {
    checkOpen();
    final ExtentList extents = new ExtentList();
    output.forEachExtent(partition, (extent, memory) -> extent.addTo(extents, memory, devices));
    return extents;
  }

  /** Returns whether the host reads all of it where it lies. */
  public boolean isInHostMemory() {
    checkOpen();
    return output.regions().stream().allMatch(region -> devices.hostAccessible(region.memory()));
  }

  /** Takes one extent and the checksum that it was written with, if it has one. */
  @FunctionalInterface
  public interface SummedConsumer {
    void extent(long address, int length, boolean summed, int crc32c);
  }

  /** Gives the extents of a block, in order; only if the output {@link #isInHostMemory}. */
  public void forEachSummedExtent(final int partition, final SummedConsumer consumer) {
    checkOpen();
    output.forEachExtent(
        partition,
        (extent, memory) ->
            consumer.extent(
                extent.address(memory), extent.length(), extent.checked(), extent.checksum()));
  }

  /**
   * A stream over a block that reads straight from memory; fails once the lease is closed.
   *
   * @throws DamagedOutputException if a copy of what the host cannot read is not what was written
   */
  public InputStream stream(final int partition) {
    final ExtentList extents = extents(partition);
    if (extents.hasDeviceOnly()) {
      copies.add(extents.toHost(devices, limit, () -> {}));
      check(partition, extents);
    }
    return extents.stream(0, extents.size(), () -> !closed.get());
  }

  /** Ends the hold. Idempotent. */
  @Override
  public void close() {
    if (closed.compareAndSet(false, true)) {
      copies.forEach(HostCopies::close);
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
