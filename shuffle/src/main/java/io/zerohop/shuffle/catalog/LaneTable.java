package io.zerohop.shuffle.catalog;

import io.zerohop.shuffle.pool.Reclaimer.LeaseBarrier;
import java.lang.invoke.VarHandle;
import java.util.ArrayDeque;
import java.util.Arrays;
import java.util.Deque;
import org.agrona.concurrent.UnsafeBuffer;

/**
 * The owner's side of the lanes: hands blocks of lanes to peers, and finds the open leases. Thread
 * safe. Does not own the memory.
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
    final OpenLanes open = new OpenLanes();
    for (int block = 0; block < BLOCKS; block++) {
      if (active[block]) {
        final int first = LaneLayout.firstLane(block);
        for (int lane = first; lane < first + LaneLayout.lanes(block); lane++) {
          final int taken = buffer.getIntVolatile(LaneLayout.offset(lane) + LaneLayout.TAKEN);
          if (taken != buffer.getIntVolatile(LaneLayout.offset(lane) + LaneLayout.DONE)) {
            open.add(block, drops[block], lane, taken);
          }
        }
      }
    }
    return open;
  }

  private synchronized long drops(final int block) {
    return drops[block];
  }

  private final class OpenLanes implements Snapshot {
    private int count;
    private int[] blocks = new int[4];
    private long[] dropped = new long[4];
    private int[] lanes = new int[4];
    private int[] taken = new int[4];

    private void add(final int block, final long before, final int lane, final int epoch) {
      if (count == lanes.length) {
        blocks = Arrays.copyOf(blocks, 2 * count);
        dropped = Arrays.copyOf(dropped, 2 * count);
        lanes = Arrays.copyOf(lanes, 2 * count);
        taken = Arrays.copyOf(taken, 2 * count);
      }
      blocks[count] = block;
      dropped[count] = before;
      lanes[count] = lane;
      taken[count] = epoch;
      count++;
    }

    @Override
    public synchronized boolean passed() {
      while (count > 0) {
        final int last = count - 1;
        final int done = buffer.getIntVolatile(LaneLayout.offset(lanes[last]) + LaneLayout.DONE);
        if (done - taken[last] < 0 && drops(blocks[last]) == dropped[last]) {
          return false;
        }
        count--;
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
}
