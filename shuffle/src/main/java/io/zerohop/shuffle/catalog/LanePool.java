package io.zerohop.shuffle.catalog;

import io.zerohop.device.WaitException;
import io.zerohop.device.ZerohopException;
import io.zerohop.device.posix.Clock;
import io.zerohop.shuffle.catalog.LaneTable.LaneLayout;
import io.zerohop.shuffle.pool.Reclaimer.LeaseBarrier;
import java.lang.invoke.VarHandle;
import java.time.Duration;
import java.util.concurrent.ArrayBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicIntegerArray;
import java.util.function.BooleanSupplier;
import org.agrona.concurrent.UnsafeBuffer;
import org.jspecify.annotations.Nullable;

/**
 * The reader's side of one block of lanes: begins and ends leases on one owner's memory. Thread
 * safe. What it stores is drawn in {@link LaneLayout}; a mirror of it on the heap serves {@link
 * #snapshot}, so that nothing that happens to the owner's memory can make this process unmap what
 * it reads.
 */
public final class LanePool implements LeaseBarrier {
  private static final long SLICE_NANOS = TimeUnit.MILLISECONDS.toNanos(10);

  private final UnsafeBuffer buffer;
  private final int firstLane;
  private final int generationOffset;
  private final long generation;
  private final BooleanSupplier connected;
  private final Clock clock;
  private final ArrayBlockingQueue<Integer> free;
  private final AtomicIntegerArray taken;
  private final AtomicIntegerArray done;
  private final AtomicInteger open = new AtomicInteger();

  /**
   * @param lanes the lanes of the owner's root segment, mapped
   * @param block the block of lanes that the owner gave us; 0 for the owner itself
   * @param generation the block's, as the owner said when it gave us the block
   * @param connected whether leases may be taken; once false, always false. It may say so late: who
   *     closed the connection is not waited for
   * @param clock by which a wait for a lane is measured
   */
  public LanePool(
      final UnsafeBuffer lanes,
      final int block,
      final long generation,
      final BooleanSupplier connected,
      final Clock clock) {
    if (block < 0 || block > LaneLayout.PEER_BLOCKS) {
      throw new ZerohopException(
          ZerohopException.Category.FETCH_FAILED, "there is no block of lanes " + block);
    }
    this.buffer = lanes;
    this.firstLane = LaneLayout.firstLane(block);
    this.generationOffset = LaneLayout.generationOffset(block);
    this.generation = generation;
    this.connected = connected;
    this.clock = clock;
    final int count = LaneLayout.lanes(block);
    free = new ArrayBlockingQueue<>(count);
    taken = new AtomicIntegerArray(count);
    done = new AtomicIntegerArray(count);
    for (int lane = 0; lane < count; lane++) {
      final int epoch = buffer.getIntVolatile(offset(lane) + LaneLayout.DONE);
      taken.set(lane, epoch);
      done.set(lane, epoch);
      free.add(lane);
    }
  }

  /**
   * Takes a lease: what is looked up afterwards stays in place until it is released.
   *
   * @return absent if no lane became free within the limit, or the owner dropped this block of
   *     lanes
   * @throws WaitException if cancelled
   */
  public @Nullable Lease take(final Duration limit, final BooleanSupplier cancelled) {
    final long deadline = clock.in(limit);
    for (; ; ) {
      final Integer lane = await(deadline, cancelled);
      if (lane == null) {
        return null;
      }
      // Counted before the look at the connection: whoever sees it closed and then counts no lease
      // may unmap the owner's memory.
      open.incrementAndGet();
      if (!isOurs()) {
        open.decrementAndGet();
        free.add(lane);
        return null;
      }
      final int epoch = taken.get(lane) + 1;
      if (buffer.compareAndSetInt(offset(lane) + LaneLayout.TAKEN, epoch - 1, epoch)) {
        taken.set(lane, epoch);
        VarHandle.fullFence();
        return new Lease(lane, epoch);
      }
      // Somebody else uses the lane: we were dropped since the look, or one who was dropped before
      // us has stored late. It is left to him; a store over his would let go what he reads.
      open.decrementAndGet();
    }
  }

  /** A lane that is free before the deadline, if there is one. */
  private @Nullable Integer await(final long deadline, final BooleanSupplier cancelled) {
    Integer lane = free.poll();
    while (lane == null) {
      final long left = clock.left(deadline);
      if (left <= 0) {
        return null;
      }
      if (cancelled.getAsBoolean()) {
        throw new WaitException(WaitException.Reason.CANCELLED, "cancelled while awaiting a lease");
      }
      try {
        lane = free.poll(Math.min(left, SLICE_NANOS), TimeUnit.NANOSECONDS);
      } catch (final InterruptedException e) {
        Thread.currentThread().interrupt();
        throw new WaitException(
            WaitException.Reason.CANCELLED, "interrupted while awaiting a lease");
      }
    }
    return lane;
  }

  /**
   * Returns whether the owner still honours the leases on this block, or did until it died or froze
   * its memory. If so, all that was read under a lease of this pool up to now was what the owner
   * had put there; if not, it may have been overwritten. One load from shared memory: nothing is
   * asked of the owner or of the socket, and it does not matter which thread has heard of what.
   *
   * <p>The fence keeps the reads in front of the load, see {@link LaneLayout}. Reads by other
   * threads, or by a device, must have ended before the call. To be called under an open lease,
   * which keeps the root mapped.
   */
  public boolean intact() {
    VarHandle.fullFence();
    return generation == buffer.getLongVolatile(generationOffset);
  }

  /** Returns whether the lanes are ours to write; for who is counted in {@link #open}. */
  private boolean isOurs() {
    return connected.getAsBoolean() && generation == buffer.getLongVolatile(generationOffset);
  }

  /** Leases that are open now. */
  public int openLeases() {
    return open.get();
  }

  /** The leases of this process alone. */
  @Override
  public Snapshot snapshot() {
    VarHandle.fullFence();
    final int[] epochs = new int[taken.length()];
    final boolean[] isOpen = new boolean[taken.length()];
    for (int lane = 0; lane < epochs.length; lane++) {
      epochs[lane] = taken.get(lane);
      isOpen[lane] = epochs[lane] != done.get(lane);
    }
    return () -> {
      for (int lane = 0; lane < epochs.length; lane++) {
        if (isOpen[lane] && done.get(lane) - epochs[lane] < 0) {
          return false;
        }
      }
      return true;
    };
  }

  private int offset(final int lane) {
    return LaneLayout.offset(firstLane + lane);
  }

  /** A hold on everything that was looked up after it was taken. Used by one thread at a time. */
  public final class Lease implements AutoCloseable {
    private final int lane;
    private final int epoch;
    private boolean released;

    private Lease(final int lane, final int epoch) {
      this.lane = lane;
      this.epoch = epoch;
    }

    /** Ends the lease; nothing that was looked up under it may be read any more. Idempotent. */
    @Override
    public void close() {
      if (released) {
        return;
      }
      released = true;
      if (isOurs()) {
        buffer.putIntOrdered(offset(lane) + LaneLayout.DONE, epoch);
      }
      done.set(lane, epoch);
      open.decrementAndGet();
      free.add(lane);
    }
  }
}
