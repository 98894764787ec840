package io.zerohop.shuffle.catalog;

import io.zerohop.device.Crc32c;
import io.zerohop.device.Device;
import io.zerohop.device.Segment;
import io.zerohop.shuffle.catalog.CatalogView.CatalogException;
import io.zerohop.shuffle.catalog.LaneTable.LaneLayout;
import io.zerohop.shuffle.pool.SegmentIds;
import io.zerohop.shuffle.pool.SegmentMemory;
import io.zerohop.shuffle.pool.SegmentRegistry;
import io.zerohop.shuffle.pool.Tier;
import java.lang.invoke.VarHandle;
import java.util.ArrayDeque;
import java.util.Deque;
import java.util.HashSet;
import java.util.Map;
import java.util.Set;
import org.agrona.concurrent.UnsafeBuffer;
import org.jspecify.annotations.Nullable;

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
  private boolean ended;

  /** Allocates and initialises a root; the incarnation names this life of the executor. */
  public RootSegment(final Device device, final long incarnation) {
    this.incarnation = incarnation;
    final Segment segment = device.allocate(RootLayout.BYTES);
    memory = new SegmentMemory(SegmentIds.id(1, Tier.HOST, 0), segment);
    buffer = memory.buffer();
    buffer.setMemory(0, RootLayout.BYTES, (byte) 0);
    buffer.putLong(RootLayout.MAGIC_OFFSET, RootLayout.MAGIC);
    buffer.putLong(RootLayout.INCARNATION_OFFSET, incarnation);
    RootLayout.NUMBERS.forEach(buffer::putInt);
    buffer.putInt(RootLayout.CRC_OFFSET, RootLayout.checksum(memory));
    buffer.putLongVolatile(RootLayout.TABLE, memory.id());
    for (int slot = 1; slot < RootLayout.TABLE_SLOTS; slot++) {
      freeSlots.add(slot);
    }
    lanes = new LaneTable(RootLayout.lanes(memory));
  }

  /**
   * Allocates the root of an owner that has ended, as it left it, with lanes of its own. What the
   * owner was writing when it was killed is not listed.
   *
   * @param left the owner's root, which nobody writes any more; its reader closes it
   * @param held the segments of the owner that are there
   */
  public RootSegment(
      final Device device,
      final long incarnation,
      final SegmentMemory left,
      final Iterable<Long> held) {
    this(device, incarnation);
    buffer.putBytes(
        RootLayout.DIRECTORY,
        left.buffer(),
        RootLayout.DIRECTORY,
        RootLayout.LANES - RootLayout.DIRECTORY);
    for (int index = 0; index < RootLayout.DIRECTORY_CELLS; index++) {
      final int cell = cellOffset(index);
      if ((buffer.getInt(cell + RootLayout.CELL_VERSION) & 1) != 0) {
        buffer.putInt(cell + RootLayout.CELL_STATE, RootLayout.STATE_DELETED);
        buffer.putIntVolatile(
            cell + RootLayout.CELL_VERSION, buffer.getInt(cell + RootLayout.CELL_VERSION) + 1);
      }
    }
    held.forEach(id -> name(SegmentIds.slot(id), id));
  }

  /**
   * Says that nothing of the memory changes any more. The list of shuffles stays as it is, since a
   * keeper goes on by it: from now on an unchanged list does not show that a segment is there.
   * Segments may be retired after that, which readers do not follow. Called by {@code
   * OwnMemory.freeze} alone.
   */
  public synchronized void end() {
    ended = true;
    buffer.putLongVolatile(RootLayout.ENDED_OFFSET, 1);
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
  public synchronized long register(final Naming naming) {
    final Integer slot = freeSlots.poll();
    return slot == null ? -1 : name(slot, naming.id(++generations[slot], slot));
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
    for (int i = 0; i < RootLayout.DIRECTORY_CELLS; i++) {
      final int cell = cellOffset(RootLayout.cell(shuffleId, i));
      if (buffer.getInt(cell + RootLayout.CELL_STATE) != RootLayout.STATE_USED) {
        write(cell, RootLayout.STATE_USED, shuffleId, segmentId, chunkOffset);
        return true;
      }
    }
    return false;
  }

  /** Takes a shuffle off the list. Callers list a shuffle at most once. */
  public synchronized void unlist(final int shuffleId) {
    if (ended) {
      return;
    }
    for (int i = 0; i < RootLayout.DIRECTORY_CELLS; i++) {
      final int index = RootLayout.cell(shuffleId, i);
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

  /**
   * A reader's view of an owner's root segment. Thread safe, lock-free; does not own the mapping.
   */
  public static final class RootView {
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
          || RootLayout.NUMBERS.entrySet().stream()
              .anyMatch(number -> buffer.getInt(number.getKey()) != number.getValue())
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
      return buffer.getLongVolatile(tableOffset(slot));
    }

    /**
     * Returns whether the owner has said that nothing of its memory changes any more (acquire). Its
     * list of shuffles stays as well.
     */
    public boolean isEnded() {
      return buffer.getLongVolatile(RootLayout.ENDED_OFFSET) != 0;
    }

    /** Returns the shuffles that are listed, but for those whose cells are being written. */
    public Set<Integer> shuffles() {
      final Set<Integer> shuffles = new HashSet<>();
      for (int cell = 0; cell < RootLayout.DIRECTORY_CELLS; cell++) {
        final int at = cellOffset(cell);
        if (buffer.getInt(at + RootLayout.CELL_STATE) == RootLayout.STATE_USED) {
          shuffles.add(buffer.getInt(at + RootLayout.CELL_SHUFFLE));
        }
      }
      return shuffles;
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
      for (int i = 0; i < RootLayout.DIRECTORY_CELLS; i++) {
        final Listing listing = read(cellOffset(RootLayout.cell(shuffleId, i)));
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

  /**
   * The root segment: what a peer maps first. All words are in the machine's byte order, since one
   * machine writes and reads them; only {@code taken} and {@code done} of a peer's lanes are
   * written by it, everything else by the owner alone.
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
   *     72 | 1 once nothing of the owner's memory changes any more   |
   *     80 | zero ...                                                |
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
  public static final class RootLayout {
    static final long MAGIC = 0x31746f6f72685a5aL;
    static final int VERSION = 5;

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
    static final int ENDED_OFFSET = 72;
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

    /** The numbers of 32 bits in the header that are the same in every root, by their offsets. */
    static final Map<Integer, Integer> NUMBERS =
        Map.of(
            VERSION_OFFSET, VERSION,
            TABLE_OFFSET, TABLE,
            TABLE_SLOTS_OFFSET, TABLE_SLOTS,
            DIRECTORY_OFFSET, DIRECTORY,
            DIRECTORY_CELLS_OFFSET, DIRECTORY_CELLS,
            LANES_OFFSET, LANES,
            LANE_COUNT_OFFSET, LaneLayout.LANES);

    private RootLayout() {}

    /** Returns the checksum for {@link #CRC_OFFSET}. */
    static int checksum(final SegmentMemory root) {
      return Crc32c.of(root.address() + CRC_FROM, CRC_TO - CRC_FROM);
    }

    /** The lanes of a root segment, as long as it is mapped. */
    public static UnsafeBuffer lanes(final SegmentMemory root) {
      return new UnsafeBuffer(root.buffer(), LANES, LaneLayout.BYTES);
    }

    /** Returns the cell that the search for a shuffle looks at in a step, from 0. */
    static int cell(final int shuffleId, final int step) {
      return (shuffleId + step) & (DIRECTORY_CELLS - 1);
    }
  }
}
