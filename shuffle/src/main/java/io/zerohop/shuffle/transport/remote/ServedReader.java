package io.zerohop.shuffle.transport.remote;

import com.google.errorprone.annotations.concurrent.GuardedBy;
import io.zerohop.device.Signal;
import io.zerohop.device.Undo;
import io.zerohop.device.ZerohopException;
import io.zerohop.device.posix.Clock;
import io.zerohop.shuffle.catalog.Catalog.OwnOutput;
import io.zerohop.shuffle.catalog.EntryCursor;
import io.zerohop.shuffle.extent.ExtentList;
import io.zerohop.shuffle.extent.ExtentList.HostCopies;
import io.zerohop.shuffle.log.ShuffleCode;
import io.zerohop.shuffle.pool.Devices;
import io.zerohop.shuffle.pool.SegmentMemory;
import io.zerohop.shuffle.transport.remote.Carrier.CarrierException;
import io.zerohop.shuffle.transport.remote.Carrier.Road;
import io.zerohop.shuffle.transport.remote.RemoteService.BlockHolder;
import io.zerohop.shuffle.transport.remote.Wire.RemoteExtents;
import java.nio.ByteBuffer;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.Executor;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** One reader's connection at its owner: its leases, which end with the connection. Thread safe. */
public class ServedReader {
  private static final Logger LOG = LoggerFactory.getLogger(ServedReader.class);

  private final Consumer<ServedLease> left;
  final Clock clock;
  private final Map<Long, ServedLease> leases = new ConcurrentHashMap<>();

  /** Asked by threads that answer everybody, and must not wait for one that connects. */
  private volatile boolean gone;

  /**
   * A reader without leases.
   *
   * @param left takes over leases that the reader did not end itself
   * @param clock by which it takes its time
   */
  public ServedReader(final Consumer<ServedLease> left, final Clock clock) {
    this.left = left;
    this.clock = clock;
  }

  final boolean isGone() {
    return gone;
  }

  /** Keeps a lease for the reader; left at once if the reader is gone. */
  final void hold(final long id, final ServedLease lease) {
    leases.put(id, lease);
    if (isGone()) {
      leave(id);
    }
  }

  /** A lease, with a reference for the caller, if it is held (still). */
  final @Nullable ServedLease find(final long id) {
    final ServedLease lease = leases.get(id);
    // The reader may end it right now, so that what was found here is released already.
    return lease != null && lease.retain() ? lease : null;
  }

  /** Returns whether a lease is held. */
  final boolean holds(final long id) {
    return leases.containsKey(id);
  }

  /** Bytes of the blocks of a lease; 0 if it is not held. */
  final long bytes(final long id) {
    final ServedLease lease = leases.get(id);
    return lease == null ? 0 : lease.bytes();
  }

  /** Ends a lease whose reader has passed; says whether it was held until now. */
  final boolean drop(final long id) {
    final ServedLease lease = leases.remove(id);
    if (lease != null) {
      lease.release();
    }
    return lease != null;
  }

  private boolean leave(final long id) {
    final ServedLease lease = leases.remove(id);
    if (lease != null) {
      lease.leave();
      left.accept(lease);
    }
    return lease != null;
  }

  /** Leaves leases that are older than a reader may take. */
  void expire(final long nanos) {
    leases.forEach(
        (id, lease) -> {
          if (lease.ageNanos() > nanos && leave(id)) {
            ShuffleCode.LEASE_EXPIRED
                .says(
                    "a reader on another node did not read "
                        + lease.extents().blocks()
                        + " blocks in "
                        + nanos / 1_000_000_000
                        + " s; its lease ended, and it will ask again")
                .warn(LOG);
          }
        });
  }

  final int leases() {
    return leases.size();
  }

  /** Ends everything. Idempotent. */
  void close() {
    gone = true;
    leases.keySet().forEach(this::leave);
  }

  /**
   * An owner's lease on the blocks of one request. Their memory stays until the reader releases it,
   * the last message is sent, the reader's connection ends, or a time limit passes. Counted, since
   * messages that are under way read the memory too: made with one reference. Thread safe.
   */
  public static final class ServedLease {
    private final List<OwnOutput> outputs = new ArrayList<>();

    /** The words of outputs that were not complete when they were looked up. */
    private final List<Signal> unready = new ArrayList<>();

    private final RemoteExtents extents = new RemoteExtents();

    /** Where each extent lies here; those in GPU memory in a copy, once there is one. */
    private final ExtentList places = new ExtentList();

    private final AtomicInteger references = new AtomicInteger(1);
    private final LeaseRoom.Share room;
    private final Clock clock;
    private final long begun;
    private @Nullable HostCopies copy;
    private long bytes;
    private volatile long left;

    private ServedLease(final LeaseRoom.Share room, final Clock clock) {
      this.room = room;
      this.clock = clock;
      this.begun = clock.nanos();
    }

    /**
     * Looks blocks up and holds them. Copies nothing.
     *
     * @param wanted number, then map id and partition of each
     * @param room for what is known of them
     * @param clock by which it ages
     * @throws RuntimeException if there is no room, or the request is cut off
     */
    static ServedLease of(
        final BlockHolder holder,
        final int shuffleId,
        final ByteBuffer wanted,
        final LeaseRoom room,
        final Clock clock) {
      final ServedLease lease = new ServedLease(room.share(), clock);
      try (Undo undo = new Undo(lease::release)) {
        lease.hold(holder, shuffleId, wanted);
        return undo.keep(lease);
      }
    }

    private void hold(final BlockHolder holder, final int shuffleId, final ByteBuffer wanted) {
      final int count = wanted.getInt();
      if (count < 0 || count > wanted.remaining() / (Long.BYTES + Integer.BYTES)) {
        throw new IllegalArgumentException("the request is truncated");
      }
      room.takeBlocks(count);
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
      room.takeExtent(extents.size());
      extents.add(
          memory.id(), extent.offset(), extent.length(), extent.checked(), extent.checksum());
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
        copy = places.toHost(devices, limit, () -> {});
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
        try (Undo all = new Undo(room::release)) {
          outputs.forEach(output -> all.add(output::release));
          if (copy != null) {
            all.add(copy);
          }
        }
      }
    }
  }

  /** A reader that receives blocks, with the connection to it. Thread safe. */
  public static final class SentReader extends ServedReader {
    private final Carrier carrier;
    private final Executor connects;
    private final Duration pause;

    /** When transfers began that are still being sent. */
    private final Map<Long, Long> sending = new ConcurrentHashMap<>();

    @GuardedBy("this")
    private byte @Nullable [] address;

    /**
     * The way to the reader, good or lost, or the attempt to make it, for all who wait for that;
     * absent before the first message. The monitor is never held while it is made.
     */
    @GuardedBy("this")
    private @Nullable CompletableFuture<Road> back;

    /** When it is tried again if the last attempt has failed. */
    private volatile long retryAt;

    /**
     * @param connects connects, which takes long if the reader's host is gone
     * @param pause after a failure, in which whoever wants to send fails at once
     */
    SentReader(
        final Carrier carrier,
        final Executor connects,
        final Duration pause,
        final Consumer<ServedLease> left,
        final Clock clock) {
      super(left, clock);
      this.carrier = carrier;
      this.connects = connects;
      this.pause = pause;
    }

    /** The reader has said where it is. */
    synchronized void address(final byte[] told) {
      address = told;
    }

    /**
     * The way to the reader, a new one where the last was lost, once there is one. Does not wait.
     *
     * @return fails with a ZerohopException (FALLBACK) if the reader cannot be reached or has not
     *     said where it is
     */
    CompletableFuture<Road> back() {
      final CompletableFuture<Road> made = new CompletableFuture<>();
      final CompletableFuture<Road> known;
      final byte[] to;
      synchronized (this) {
        known = back;
        to = address;
        if (to == null || isGone()) {
          return CompletableFuture.failedFuture(
              new ZerohopException(
                  ZerohopException.Category.FALLBACK,
                  "the reader has left, or has not sent its address"));
        }
        if (known != null && stands(known)) {
          return known;
        }
        back = made;
      }
      if (known != null) {
        known.thenAccept(Road::close);
      }
      try {
        connects.execute(() -> connect(to, made));
      } catch (final RejectedExecutionException e) {
        fail(made, new CarrierException("this executor is shutting down", e));
      }
      return made;
    }

    /** Whether it is good, is still being made, or has failed just now. */
    private boolean stands(final CompletableFuture<Road> known) {
      if (!known.isDone()) { // First: what is looked at behind it does not change any more.
        return true;
      }
      return known.isCompletedExceptionally() ? !clock.isOver(retryAt) : known.join().alive();
    }

    private void connect(final byte[] to, final CompletableFuture<Road> made) {
      final Road road;
      try {
        road = carrier.connect(to);
      } catch (final RuntimeException | Error e) { // Whatever it is, somebody waits.
        LOG.debug("a reader cannot be reached", e);
        fail(made, e);
        return;
      }
      made.complete(road);
    }

    private void fail(final CompletableFuture<Road> made, final Throwable why) {
      retryAt = clock.in(pause);
      made.completeExceptionally(why);
    }

    /** The next message goes by a new road; one that is still being made is closed once made. */
    private void drop() {
      final CompletableFuture<Road> old;
      synchronized (this) {
        old = back;
        back = null;
      }
      if (old != null) {
        old.thenAccept(Road::close);
      }
    }

    /** Messages of a transfer are on their way to the reader, until {@link #sent}. */
    void sends(final long transfer) {
      sending.put(transfer, clock.nanos());
    }

    /** None of them is any more. */
    void sent(final long transfer) {
      sending.remove(transfer);
    }

    /**
     * Besides what all readers leave: if it has not even taken what was sent to it, the way to it
     * is closed, with which all of that ends. It holds memory of this process, and a place that
     * others wait for.
     */
    @Override
    void expire(final long nanos) {
      final long now = clock.nanos();
      if (sending.values().stream().anyMatch(since -> now - since > nanos)) {
        sending.replaceAll((transfer, since) -> now); // It ends in the background.
        ShuffleCode.SEND_NOT_TAKEN
            .says(
                "a reader on another node did not take what was sent to it for "
                    + nanos / 1_000_000_000
                    + " s; it will ask again")
            .warn(LOG);
        drop();
      }
      super.expire(nanos);
    }

    @Override
    void close() {
      super.close(); // Nobody makes a way back any more.
      drop();
    }
  }
}
