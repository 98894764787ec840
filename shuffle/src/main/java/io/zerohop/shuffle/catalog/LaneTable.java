package io.zerohop.shuffle.catalog;

import io.zerohop.device.WaitException;
import io.zerohop.device.ZerohopException;
import io.zerohop.device.posix.Clock;
import io.zerohop.shuffle.catalog.LaneTable.LaneLayout;
import io.zerohop.shuffle.pool.Reclaimer.LeaseBarrier;
import java.lang.invoke.VarHandle;
import java.time.Duration;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.List;
import java.util.concurrent.ArrayBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicIntegerArray;
import java.util.function.BooleanSupplier;
import org.agrona.concurrent.UnsafeBuffer;
import org.jspecify.annotations.Nullable;

/**
 * The owner's side of the lanes ({@link LanePool} is the reader's): hands blocks of lanes to peers,
 * and finds the open leases. Thread safe. Does not own the memory.
 *
 * <p>Whoever drops the leases of a block says so in the block's generation first, see {@link
 * LaneLayout}: a reader that lives on, and does not know yet that its connection is lost, finds out
 * by it that what it has read may have been overwritten.
 *
 * <p>A block that a peer gave up goes to the end of the line: should a peer that only lost its
 * connection still store into its old lanes, nobody else uses them for long.
 */
public final class LaneTable implements LeaseBarrier {
  private static final int BLOCKS = LaneLayout.PEER_BLOCKS + 1;

  private final UnsafeBuffer buffer;
  private final Deque<Integer> free = new ArrayDeque<>();
  private final boolean[] active = new boolean[BLOCKS];
  private final long[] drops = new long[BLOCKS];
  private int connected;
  private boolean frozen;

  /**
   * @param lanes those of a root segment that nobody else has mapped yet
   */
  public LaneTable(final UnsafeBuffer lanes) {
    this.buffer = lanes;
    active[0] = true;
    for (int block = 1; block < BLOCKS; block++) {
      free.add(block);
    }
  }

  /** Gives a peer a block of lanes; -1 if there is none left. */
  public synchronized int connect() {
    final Integer block = free.poll();
    if (block == null) {
      return -1;
    }
    final int first = LaneLayout.firstLane(block);
    for (int lane = first; lane < first + LaneLayout.lanes(block); lane++) {
      final int offset = LaneLayout.offset(lane);
      buffer.putIntVolatile(
          offset + LaneLayout.DONE, buffer.getIntVolatile(offset + LaneLayout.TAKEN));
    }
    active[block] = true;
    connected++;
    return block;
  }

  /**
   * The generation of a block as it stands in memory: what a peer is told when it is given the
   * block, and must find there as long as its leases hold.
   */
  public synchronized long generation(final int block) {
    return buffer.getLong(LaneLayout.generationOffset(block));
  }

  /**
   * Says that no memory is reused from now on, so that leases that are dropped need not be told.
   * Called after the pools were frozen; cannot be undone.
   */
  public synchronized void freeze() {
    frozen = true;
  }

  /** Drops all leases of a block whose peer is gone. */
  public synchronized void disconnect(final int block) {
    if (block > 0 && active[block]) {
      if (!frozen) {
        buffer.putLongVolatile(LaneLayout.generationOffset(block), generation(block) + 1);
        VarHandle.fullFence(); // In front of whatever is written where the leases were.
      }
      active[block] = false;
      drops[block]++;
      free.add(block);
      connected--;
    }
  }

  /** Peers that hold a block. */
  public synchronized int connected() {
    return connected;
  }

  /** A number that changes with each lease that is taken, and when peers come and go. */
  public synchronized int taken() {
    int sum = 0;
    for (int block = 0; block < BLOCKS; block++) {
      if (active[block]) {
        final int first = LaneLayout.firstLane(block);
        for (int lane = first; lane < first + LaneLayout.lanes(block); lane++) {
          sum += 1 + buffer.getIntVolatile(LaneLayout.offset(lane) + LaneLayout.TAKEN);
        }
      }
    }
    return sum;
  }

  @Override
  public synchronized Snapshot snapshot() {
    VarHandle.fullFence();
    final OpenLanes lanes = new OpenLanes();
    for (int block = 0; block < BLOCKS; block++) {
      if (active[block]) {
        final int first = LaneLayout.firstLane(block);
        for (int lane = first; lane < first + LaneLayout.lanes(block); lane++) {
          final int taken = buffer.getIntVolatile(LaneLayout.offset(lane) + LaneLayout.TAKEN);
          if (taken != buffer.getIntVolatile(LaneLayout.offset(lane) + LaneLayout.DONE)) {
            lanes.open.add(new OpenLane(block, drops[block], lane, taken));
          }
        }
      }
    }
    return lanes;
  }

  private synchronized long drops(final int block) {
    return drops[block];
  }

  /** A lane that was open, and how often the leases of its block had been dropped by then. */
  private record OpenLane(int block, long dropped, int lane, int taken) {}

  private final class OpenLanes implements Snapshot {
    private final List<OpenLane> open = new ArrayList<>();

    @Override
    public synchronized boolean passed() {
      while (!open.isEmpty()) {
        final OpenLane last = open.get(open.size() - 1);
        final int done = buffer.getIntVolatile(LaneLayout.offset(last.lane) + LaneLayout.DONE);
        if (done - last.taken < 0 && drops(last.block) == last.dropped) {
          return false;
        }
        open.remove(open.size() - 1);
      }
      return true;
    }
  }

  /**
   * The layout of lanes: words by which readers tell the owner what they may still be reading. A
   * lane has a cache line of its own and serves one lease at a time.
   *
   * <pre>
   *  0          4          8                16                64
   *  | taken    | done     | generation (64) | zero             |
   * </pre>
   *
   * <p>A lease is open while {@code taken != done}. Both words only grow (cyclically) and are never
   * reset. Lanes come in blocks: the first {@link #LOCAL_LANES} belong to the owner's own readers,
   * then one block of {@link #PEER_LANES} for each connected peer.
   *
   * <p>{@code generation} counts how often the owner dropped the leases of a block, whatever they
   * said: its peer's connection was lost, or given up by either side. It stands in the first lane
   * of each block, and the owner alone writes it. An owner that froze its memory leaves it as it
   * is, since nothing that a reader may have found changes any more; that of a dead owner stays
   * too.
   *
   * <p>Memory order, see docs/leases.md: a reader stores {@code taken} and issues a full fence
   * before it looks anything up; it stores {@code done} with release order after its last read. The
   * owner unpublishes, issues a full fence, and then reads {@code taken}; it reads {@code done}
   * with acquire order before it reuses memory. The owner that drops a block stores its {@code
   * generation} and issues a full fence <em>before</em> anybody is told that the leases of the
   * block are over; so the store is in front of every store into memory that they held. A reader
   * issues a full fence behind its last read and then loads {@code generation}: if it read anything
   * of what came after the leases, it finds another generation there. The news of a closed socket
   * comes by another thread, at any time, and proves nothing.
   */
  public static final class LaneLayout {
    static final int TAKEN = 0;
    static final int DONE = 4;
    static final int GENERATION = 8;
    static final int LANE_BYTES = 64;

    static final int LOCAL_LANES = 1024;
    static final int PEER_LANES = 128;
    static final int PEER_BLOCKS = 128;
    public static final int LANES = LOCAL_LANES + PEER_BLOCKS * PEER_LANES;

    /** What all lanes take. */
    public static final int BYTES = LANES * LANE_BYTES;

    private LaneLayout() {}

    /** Index of the first lane of a block; block 0 is the owner's. */
    static int firstLane(final int block) {
      return block == 0 ? 0 : LOCAL_LANES + (block - 1) * PEER_LANES;
    }

    /** Returns the offset of a lane, in bytes from the first one. */
    static int offset(final int lane) {
      return lane * LANE_BYTES;
    }

    /** Returns the offset of a block's generation, in bytes from the first lane. */
    static int generationOffset(final int block) {
      return offset(firstLane(block)) + GENERATION;
    }

    /** Lanes of a block. */
    static int lanes(final int block) {
      return block == 0 ? LOCAL_LANES : PEER_LANES;
    }
  }

  /**
   * The reader's side of one block of lanes: begins and ends leases on one owner's memory. Thread
   * safe. What it stores is drawn in {@link LaneLayout}; a mirror of it on the heap serves {@link
   * #snapshot}, so that nothing that happens to the owner's memory can make this process unmap what
   * it reads.
   */
  public static final class LanePool implements LeaseBarrier {
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
     * @param connected whether leases may be taken; once false, always false. It may say so late:
     *     who closed the connection is not waited for. An owner for its own readers says so before
     *     it looks for the last time which leases are open
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
        // Counted before the look at the connection: whoever sees it closed and then counts no
        // lease may unmap the owner's memory.
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
          final Lease lease = new Lease(lane, epoch);
          if (isOurs()) {
            return lease;
          }
          // An owner that ends unpublishes nothing: it stops this first, and then looks at the
          // leases once. It may have done both between our look and our store.
          lease.close();
          return null;
        }
        // Somebody else uses the lane: we were dropped since the look, or one who was dropped
        // before us has stored late. It is left to him; a store over his would let go what he
        // reads.
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
          throw new WaitException(
              WaitException.Reason.CANCELLED, "cancelled while awaiting a lease");
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
     * Returns whether the owner still honours the leases on this block, or did until it died or
     * froze its memory. If so, all that was read under a lease of this pool up to now was what the
     * owner had put there; if not, it may have been overwritten. One load from shared memory:
     * nothing is asked of the owner or of the socket, and it does not matter which thread has heard
     * of what.
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
}
