package io.zerohop.shuffle.transport.remote.owner;

import io.zerohop.device.Signal;
import io.zerohop.device.posix.Clock;
import io.zerohop.shuffle.catalog.EntryCursor;
import io.zerohop.shuffle.catalog.OwnOutput;
import io.zerohop.shuffle.extent.ExtentList;
import io.zerohop.shuffle.extent.HostCopies;
import io.zerohop.shuffle.pool.Devices;
import io.zerohop.shuffle.pool.SegmentMemory;
import io.zerohop.shuffle.transport.remote.owner.RemoteService.BlockHolder;
import io.zerohop.shuffle.transport.remote.wire.RemoteExtents;
import java.nio.ByteBuffer;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;
import org.jspecify.annotations.Nullable;

/**
 * An owner's lease on the blocks of one request. Their memory stays until the reader releases it,
 * the last message is sent, the reader's connection ends, or a time limit passes. Counted, since
 * messages that are under way read the memory too: made with one reference. Thread safe.
 */
public final class ServedLease {
  private final List<OwnOutput> outputs = new ArrayList<>();

  /** The words of outputs that were not complete when they were looked up. */
  private final List<Signal> unready = new ArrayList<>();

  private final RemoteExtents extents = new RemoteExtents();

  /** Where each extent lies here; those in GPU memory in a copy, once there is one. */
  private final ExtentList places = new ExtentList();

  private final AtomicInteger references = new AtomicInteger(1);
  private final Clock clock;
  private final long begun;
  private @Nullable HostCopies copy;
  private long bytes;
  private volatile long left;

  private ServedLease(final Clock clock) {
    this.clock = clock;
    this.begun = clock.nanos();
  }

  /**
   * Looks blocks up and holds them. Copies nothing.
   *
   * @param wanted number, then map id and partition of each
   * @param clock by which it ages
   */
  static ServedLease of(
      final BlockHolder holder, final int shuffleId, final ByteBuffer wanted, final Clock clock) {
    final ServedLease lease = new ServedLease(clock);
    boolean done = false;
    try {
      lease.hold(holder, shuffleId, wanted);
      done = true;
      return lease;
    } finally {
      if (!done) {
        lease.release();
      }
    }
  }

  private void hold(final BlockHolder holder, final int shuffleId, final ByteBuffer wanted) {
    final int count = wanted.getInt();
    long mapId = -1;
    OwnOutput output = null;
    for (int i = 0; i < count; i++) {
      final long next = wanted.getLong();
      final int partition = wanted.getInt();
      if (i == 0 || next != mapId) {
        mapId = next;
        output = holder.retain(shuffleId, mapId);
        if (output != null) {
          outputs.add(output);
          final Signal ready = holder.ready(output);
          if (!ready.reached(OwnOutput.READY_EPOCH)) {
            unready.add(ready);
          }
        }
      }
      if (output != null && partition >= 0 && partition < output.partitions()) {
        output.forEachExtent(partition, this::add);
      }
      extents.endBlock();
    }
  }

  private void add(final EntryCursor extent, final SegmentMemory memory) {
    extents.add(memory.id(), extent.offset(), extent.length(), extent.checked(), extent.checksum());
    final boolean onGpu = extents.isOnGpu(extents.size() - 1);
    places.add(extent.address(memory), extent.length(), onGpu);
    bytes += extent.length();
  }

  /** Returns whether the copies of all blocks have ended. */
  boolean isReady() {
    return unready.stream().allMatch(word -> word.reached(OwnOutput.READY_EPOCH));
  }

  /** Returns whether some of them never will be there. */
  boolean hasFailed() {
    return unready.stream()
        .anyMatch(word -> word.aborted() != 0 && !word.reached(OwnOutput.READY_EPOCH));
  }

  /** Returns the extents for the reader. */
  RemoteExtents extents() {
    return extents;
  }

  /** Bytes of all blocks. */
  long bytes() {
    return bytes;
  }

  /** Copies what lies in GPU memory to the host, unless that was done. Waits for the GPU. */
  synchronized void bringToHost(final Devices devices, final Duration limit) {
    if (places.hasDeviceOnly()) {
      copy = HostCopies.gather(devices, places, limit, () -> {});
    }
  }

  /** Returns the address of an extent here, after {@link #bringToHost}. */
  long address(final int extent) {
    return places.address(extent);
  }

  /**
   * The reader is gone, or takes too long. What it began to read may still be read for it, by a
   * carrier in this very process, so the memory stays a while longer.
   */
  void leave() {
    left = clock.nanos() | 1;
  }

  /** Returns the time since the reader left it; 0 if it did not. */
  long leftNanos() {
    return left == 0 ? 0 : clock.since(left);
  }

  /** Returns the time since it was taken. */
  long ageNanos() {
    return clock.since(begun);
  }

  /** Takes a reference more; false if the last one was dropped already. */
  boolean retain() {
    return references.getAndUpdate(count -> count == 0 ? 0 : count + 1) > 0;
  }

  /** Drops a reference; the last one lets the memory go. */
  void release() {
    if (references.decrementAndGet() == 0) {
      if (copy != null) {
        copy.close();
      }
      outputs.forEach(OwnOutput::release);
    }
  }
}
