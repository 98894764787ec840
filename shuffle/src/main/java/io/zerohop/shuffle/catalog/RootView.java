package io.zerohop.shuffle.catalog;

import io.zerohop.shuffle.catalog.CatalogView.CatalogException;
import io.zerohop.shuffle.catalog.RootSegment.RootLayout;
import io.zerohop.shuffle.lease.LaneTable.LaneLayout;
import io.zerohop.shuffle.pool.SegmentIds;
import io.zerohop.shuffle.pool.SegmentMemory;
import java.lang.invoke.VarHandle;
import org.agrona.concurrent.UnsafeBuffer;
import org.jspecify.annotations.Nullable;

/** A reader's view of an owner's root segment. Thread safe, lock-free; does not own the mapping. */
public final class RootView {
  private static final int MAX_READS = 10_000;

  private final UnsafeBuffer buffer;
  private final String owner;

  /**
   * Checks the header.
   *
   * @param owner names the owner in messages
   * @throws CatalogException if this is not the root of the expected incarnation
   */
  public RootView(final SegmentMemory memory, final long incarnation, final String owner) {
    this.buffer = memory.buffer();
    this.owner = owner;
    if (buffer.capacity() < RootLayout.BYTES
        || buffer.getLong(RootLayout.MAGIC_OFFSET) != RootLayout.MAGIC
        || buffer.getInt(RootLayout.VERSION_OFFSET) != RootLayout.VERSION
        || buffer.getInt(RootLayout.TABLE_OFFSET) != RootLayout.TABLE
        || buffer.getInt(RootLayout.TABLE_SLOTS_OFFSET) != RootLayout.TABLE_SLOTS
        || buffer.getInt(RootLayout.DIRECTORY_OFFSET) != RootLayout.DIRECTORY
        || buffer.getInt(RootLayout.DIRECTORY_CELLS_OFFSET) != RootLayout.DIRECTORY_CELLS
        || buffer.getInt(RootLayout.LANES_OFFSET) != RootLayout.LANES
        || buffer.getInt(RootLayout.LANE_COUNT_OFFSET) != LaneLayout.LANES
        || buffer.getInt(RootLayout.CRC_OFFSET) != RootLayout.checksum(memory)) {
      throw new CatalogException("the root segment of executor " + owner + " is damaged");
    }
    if (buffer.getLong(RootLayout.INCARNATION_OFFSET) != incarnation) {
      throw new CatalogException(
          "executor " + owner + " was restarted, and its earlier blocks are lost");
    }
  }

  /** Returns whether the owner still uses the segment of this id (acquire). */
  public boolean inUse(final long segmentId) {
    return inSlot(SegmentIds.slot(segmentId)) == segmentId;
  }

  /** The id of the segment that a slot of the owner's table names (acquire); 0 if none. */
  public long inSlot(final int slot) {
    return buffer.getLongVolatile(RootLayout.TABLE + slot * RootLayout.TABLE_SLOT_BYTES);
  }

  /** Returns how many bytes its owner would lend, as it said last. */
  public long lendable() {
    return buffer.getLongVolatile(RootLayout.LENDABLE_OFFSET);
  }

  /**
   * Looks a shuffle up.
   *
   * @return where its first chunk is and the version of its cell, if it is listed
   */
  @Nullable Listing find(final int shuffleId) {
    final int cells = RootLayout.DIRECTORY_CELLS;
    for (int i = 0; i < cells; i++) {
      final int index = (RootLayout.firstCell(shuffleId, cells) + i) & (cells - 1);
      final Listing listing = read(RootLayout.DIRECTORY + index * RootLayout.CELL_BYTES);
      if (listing.state == RootLayout.STATE_EMPTY) {
        return null;
      }
      if (listing.state == RootLayout.STATE_USED && listing.shuffleId == shuffleId) {
        return listing;
      }
    }
    return null;
  }

  /** Returns whether nothing changed in the cell since the listing was read (acquire). */
  boolean isCurrent(final Listing listing) {
    return buffer.getIntVolatile(listing.cell + RootLayout.CELL_VERSION) == listing.version;
  }

  @SuppressWarnings("ThreadPriorityCheck") // The loop has an end, and fails there.
  private Listing read(final int cell) {
    for (int i = 0; i < MAX_READS; i++) {
      final int version = buffer.getIntVolatile(cell + RootLayout.CELL_VERSION);
      if ((version & 1) == 0) {
        final int state = buffer.getInt(cell + RootLayout.CELL_STATE);
        final int shuffleId = buffer.getInt(cell + RootLayout.CELL_SHUFFLE);
        final long segmentId = buffer.getLong(cell + RootLayout.CELL_SEGMENT);
        final long offset = buffer.getLong(cell + RootLayout.CELL_CHUNK);
        VarHandle.loadLoadFence();
        if (buffer.getIntVolatile(cell + RootLayout.CELL_VERSION) == version) {
          return new Listing(cell, version, state, shuffleId, segmentId, offset);
        }
      }
      Thread.onSpinWait();
      if (i > 100) {
        Thread.yield();
      }
    }
    throw new CatalogException(
        "the shuffle directory of executor "
            + owner
            + " stays half written: it died or is damaged");
  }

  record Listing(
      int cell, int version, int state, int shuffleId, long segmentId, long chunkOffset) {}
}
