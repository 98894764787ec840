package io.zerohop.shuffle.lease;

import io.zerohop.shuffle.pool.LeaseBarrier;
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
}
