package io.zerohop.shuffle.catalog;

import io.zerohop.device.Crc32c;
import io.zerohop.shuffle.lease.LaneTable.LaneLayout;
import io.zerohop.shuffle.pool.SegmentIds;
import io.zerohop.shuffle.pool.SegmentMemory;
import org.agrona.concurrent.UnsafeBuffer;

/**
 * The root segment: what a peer maps first. All words are in the machine's byte order, since one
 * machine writes and reads them; only {@code taken} and {@code done} of a peer's lanes are written
 * by it, everything else by the owner alone.
 *
 * <pre>
 *      0 +----------------------------+----------------------------+
 *        | magic (64)                                              |
 *      8 | CRC32C of bytes 12..63     | layout version             |
 *     16 | incarnation (64)                                        |
 *     24 | segment table offset       | segment table slots        |
 *     32 | directory offset           | directory cells            |
 *     40 | lanes offset               | lanes                      |
 *     48 | zero                                                    |
 *     64 | bytes that peers may borrow now (64)                    |
 *     72 | zero ...                                                |
 *    128 +---------------------------------------------------------+
 *        | segment table: one word a slot, the id of the segment   |
 *        | in use, 0 if none; a peer sees a retired segment by it   |
 *        +---------------------------------------------------------+
 *        | directory: 32 bytes a cell, open addressing             |
 *        |   0 version (odd: being written) |  4 state             |
 *        |   8 shuffle id                   | 12 zero              |
 *        |  16 segment id of the first chunk                       |
 *        |  24 offset of the first chunk                           |
 *        +---------------------------------------------------------+
 *        | lanes, see LaneLayout                                   |
 *        +---------------------------------------------------------+
 * </pre>
 *
 * <p>Memory order: the header is written before any peer can map the segment. A cell is read
 * between two reads of its version (acquire) that must be equal and even. A version is never used
 * again in its cell, so an unchanged version proves an unchanged cell. The bytes that may be
 * borrowed are a hint, which a peer asks the owner about.
 */
public final class RootLayout {
  static final long MAGIC = 0x31746f6f72685a5aL;
  static final int VERSION = 4;

  static final int MAGIC_OFFSET = 0;
  static final int CRC_OFFSET = 8;
  static final int CRC_FROM = 12;
  static final int VERSION_OFFSET = 12;
  static final int INCARNATION_OFFSET = 16;
  static final int TABLE_OFFSET = 24;
  static final int TABLE_SLOTS_OFFSET = 28;
  static final int DIRECTORY_OFFSET = 32;
  static final int DIRECTORY_CELLS_OFFSET = 36;
  static final int LANES_OFFSET = 40;
  static final int LANE_COUNT_OFFSET = 44;
  static final int CRC_TO = 64;
  static final int LENDABLE_OFFSET = 64;
  static final int HEADER_BYTES = 128;

  static final int TABLE_SLOTS = SegmentIds.MAX_SLOTS;
  static final int TABLE_SLOT_BYTES = 8;

  static final int DIRECTORY_CELLS = 4096;
  static final int CELL_BYTES = 32;
  static final int CELL_VERSION = 0;
  static final int CELL_STATE = 4;
  static final int CELL_SHUFFLE = 8;
  static final int CELL_SEGMENT = 16;
  static final int CELL_CHUNK = 24;
  static final int STATE_EMPTY = 0;
  static final int STATE_USED = 1;
  static final int STATE_DELETED = 2;

  static final int TABLE = HEADER_BYTES;
  static final int DIRECTORY = TABLE + TABLE_SLOTS * TABLE_SLOT_BYTES;
  static final int LANES = DIRECTORY + DIRECTORY_CELLS * CELL_BYTES;
  static final int BYTES = LANES + LaneLayout.BYTES;

  private RootLayout() {}

  /** Returns the checksum for {@link #CRC_OFFSET}. */
  static int checksum(final SegmentMemory root) {
    return Crc32c.of(root.address() + CRC_FROM, CRC_TO - CRC_FROM);
  }

  /** The lanes of a root segment, as long as it is mapped. */
  public static UnsafeBuffer lanes(final SegmentMemory root) {
    return new UnsafeBuffer(root.buffer(), LANES, LaneLayout.BYTES);
  }

  /** Returns the cell at which the search for a shuffle begins. */
  static int firstCell(final int shuffleId, final int cells) {
    return shuffleId & (cells - 1);
  }
}
