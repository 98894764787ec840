package io.zerohop.shuffle.catalog;

import io.zerohop.device.Device;
import io.zerohop.device.Segment;
import io.zerohop.shuffle.lease.LaneTable;
import io.zerohop.shuffle.lease.LaneTable.LaneLayout;
import io.zerohop.shuffle.pool.SegmentIds;
import io.zerohop.shuffle.pool.SegmentMemory;
import io.zerohop.shuffle.pool.SegmentRegistry;
import io.zerohop.shuffle.pool.Tier;
import java.util.ArrayDeque;
import java.util.Deque;
import org.agrona.concurrent.UnsafeBuffer;

/**
 * The owner's root segment: names segments, lists shuffles, holds the lanes. Thread safe; owns its
 * segment. Layout: {@link RootLayout}.
 */
public final class RootSegment implements SegmentRegistry, AutoCloseable {
  private final long incarnation;
  private final SegmentMemory memory;
  private final UnsafeBuffer buffer;
  private final LaneTable lanes;
  private final long[] generations = new long[RootLayout.TABLE_SLOTS];
  private final Deque<Integer> freeSlots = new ArrayDeque<>();

  /** Allocates and initialises a root; the incarnation names this life of the executor. */
  public RootSegment(final Device device, final long incarnation) {
    this.incarnation = incarnation;
    final Segment segment = device.allocate(RootLayout.BYTES);
    memory = new SegmentMemory(SegmentIds.id(1, Tier.HOST, 0), segment);
    buffer = memory.buffer();
    buffer.setMemory(0, RootLayout.BYTES, (byte) 0);
    buffer.putLong(RootLayout.MAGIC_OFFSET, RootLayout.MAGIC);
    buffer.putInt(RootLayout.VERSION_OFFSET, RootLayout.VERSION);
    buffer.putLong(RootLayout.INCARNATION_OFFSET, incarnation);
    buffer.putInt(RootLayout.TABLE_OFFSET, RootLayout.TABLE);
    buffer.putInt(RootLayout.TABLE_SLOTS_OFFSET, RootLayout.TABLE_SLOTS);
    buffer.putInt(RootLayout.DIRECTORY_OFFSET, RootLayout.DIRECTORY);
    buffer.putInt(RootLayout.DIRECTORY_CELLS_OFFSET, RootLayout.DIRECTORY_CELLS);
    buffer.putInt(RootLayout.LANES_OFFSET, RootLayout.LANES);
    buffer.putInt(RootLayout.LANE_COUNT_OFFSET, LaneLayout.LANES);
    buffer.putInt(RootLayout.CRC_OFFSET, RootLayout.checksum(memory));
    buffer.putLongVolatile(RootLayout.TABLE, memory.id());
    for (int slot = 1; slot < RootLayout.TABLE_SLOTS; slot++) {
      freeSlots.add(slot);
    }
    lanes = new LaneTable(RootLayout.lanes(memory));
  }

  public long incarnation() {
    return incarnation;
  }

  /** The segment, for those who map or read it. */
  public SegmentMemory memory() {
    return memory;
  }

  public LaneTable lanes() {
    return lanes;
  }

  @Override
  public synchronized long register(final Tier tier) {
    final Integer slot = freeSlots.poll();
    return slot == null ? -1 : name(slot, SegmentIds.id(++generations[slot], tier, slot));
  }

  @Override
  public synchronized long registerLent() {
    final Integer slot = freeSlots.poll();
    return slot == null ? -1 : name(slot, SegmentIds.lentId(++generations[slot], slot));
  }

  private long name(final int slot, final long id) {
    buffer.putLongVolatile(tableOffset(slot), id);
    return id;
  }

  @Override
  public void lendable(final long bytes) {
    buffer.putLongOrdered(RootLayout.LENDABLE_OFFSET, bytes);
  }

  @Override
  public synchronized void retire(final long segmentId) {
    final int slot = SegmentIds.slot(segmentId);
    if (buffer.getLongVolatile(tableOffset(slot)) != segmentId) {
      throw new IllegalStateException("segment " + segmentId + " is not in use");
    }
    buffer.putLongVolatile(tableOffset(slot), 0);
    freeSlots.add(slot);
  }

  /**
   * Lists a shuffle's first chunk.
   *
   * @return false if the directory is full
   */
  synchronized boolean list(final int shuffleId, final long segmentId, final long chunkOffset) {
    final int cells = RootLayout.DIRECTORY_CELLS;
    for (int i = 0; i < cells; i++) {
      final int cell = cellOffset((RootLayout.firstCell(shuffleId, cells) + i) & (cells - 1));
      if (buffer.getInt(cell + RootLayout.CELL_STATE) != RootLayout.STATE_USED) {
        write(cell, RootLayout.STATE_USED, shuffleId, segmentId, chunkOffset);
        return true;
      }
    }
    return false;
  }

  /** Takes a shuffle off the list. Callers list a shuffle at most once. */
  synchronized void unlist(final int shuffleId) {
    final int cells = RootLayout.DIRECTORY_CELLS;
    for (int i = 0; i < cells; i++) {
      final int index = (RootLayout.firstCell(shuffleId, cells) + i) & (cells - 1);
      final int cell = cellOffset(index);
      final int state = buffer.getInt(cell + RootLayout.CELL_STATE);
      if (state == RootLayout.STATE_EMPTY) {
        return;
      }
      if (state == RootLayout.STATE_USED
          && buffer.getInt(cell + RootLayout.CELL_SHUFFLE) == shuffleId) {
        write(cell, RootLayout.STATE_DELETED, 0, 0, 0);
        tidy(index);
        return;
      }
    }
  }

  /** Deleted cells right before an empty one end no search early if they become empty too. */
  private void tidy(final int index) {
    final int mask = RootLayout.DIRECTORY_CELLS - 1;
    int cell = index;
    if (state((cell + 1) & mask) == RootLayout.STATE_EMPTY) {
      while (state(cell) == RootLayout.STATE_DELETED) {
        write(cellOffset(cell), RootLayout.STATE_EMPTY, 0, 0, 0);
        cell = (cell - 1) & mask;
      }
    }
  }

  private int state(final int index) {
    return buffer.getInt(cellOffset(index) + RootLayout.CELL_STATE);
  }

  private void write(
      final int cell,
      final int state,
      final int shuffleId,
      final long segmentId,
      final long chunkOffset) {
    final int version = buffer.getInt(cell + RootLayout.CELL_VERSION);
    buffer.putIntVolatile(cell + RootLayout.CELL_VERSION, version + 1);
    java.lang.invoke.VarHandle.storeStoreFence();
    buffer.putInt(cell + RootLayout.CELL_STATE, state);
    buffer.putInt(cell + RootLayout.CELL_SHUFFLE, shuffleId);
    buffer.putLong(cell + RootLayout.CELL_SEGMENT, segmentId);
    buffer.putLong(cell + RootLayout.CELL_CHUNK, chunkOffset);
    buffer.putIntVolatile(cell + RootLayout.CELL_VERSION, version + 2);
  }

  private static int tableOffset(final int slot) {
    return RootLayout.TABLE + slot * RootLayout.TABLE_SLOT_BYTES;
  }

  private static int cellOffset(final int index) {
    return RootLayout.DIRECTORY + index * RootLayout.CELL_BYTES;
  }

  @Override
  public void close() {
    memory.close();
  }
}
