package io.zerohop.shuffle.catalog;

import io.zerohop.device.Crc32c;
import io.zerohop.device.Device;
import io.zerohop.device.Signal;
import io.zerohop.device.Signal.SignalEpoch;
import io.zerohop.device.ZerohopException;
import io.zerohop.shuffle.catalog.EntryCursor.EntryLayout;
import io.zerohop.shuffle.catalog.RootSegment.RootView;
import io.zerohop.shuffle.pool.SegmentMemory;
import io.zerohop.shuffle.pool.SegmentResolver;
import java.nio.ByteBuffer;
import java.util.Arrays;
import java.util.HashMap;
import java.util.HashSet;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicLongArray;
import java.util.function.LongConsumer;
import org.agrona.concurrent.UnsafeBuffer;
import org.jspecify.annotations.Nullable;

/** A reader's view of one owner's catalog. Thread safe; to be used under a lease. */
public final class CatalogView {
  private final RootView root;
  private final SegmentResolver segments;
  private final String owner;
  private final long incarnation;
  private final ConcurrentHashMap<Integer, ShuffleView> shuffles = new ConcurrentHashMap<>();

  /**
   * @param segments finds the owner's segments
   * @param owner names the owner in messages
   */
  public CatalogView(
      final RootView root,
      final SegmentResolver segments,
      final String owner,
      final long incarnation) {
    this.root = root;
    this.segments = segments;
    this.owner = owner;
    this.incarnation = incarnation;
  }

  /**
   * The shuffle as the owner lists it now. Must be asked once under each lease: a view that was
   * valid under an earlier one may have been freed since.
   *
   * @return absent if the owner lists no map output of it
   * @throws CatalogException if what was found is damaged
   */
  public @Nullable ShuffleView shuffle(final int shuffleId) {
    final ShuffleView known = shuffles.get(shuffleId);
    if (known != null && root.isCurrent(known.listing())) {
      return known;
    }
    final RootView.Listing listing = root.find(shuffleId);
    if (listing == null) {
      shuffles.remove(shuffleId);
      return null;
    }
    final ShuffleView view = new ShuffleView(listing);
    shuffles.put(shuffleId, view);
    return view;
  }

  private String describe(final int shuffleId) {
    return "the catalog of executor " + owner + ", shuffle " + shuffleId;
  }

  /** Drops what was remembered of a shuffle. */
  public void forget(final int shuffleId) {
    shuffles.remove(shuffleId);
  }

  /** Thrown if a catalog, an entry or its target is damaged or not as expected. */
  public static final class CatalogException extends ZerohopException {
    private static final long serialVersionUID = 1L;

    public CatalogException(final String message) {
      super(Category.FETCH_FAILED, message);
    }
  }

  /**
   * A reader's view of one chunk. Lock-free and thread safe; valid under a lease. Entries are
   * summed once: the word of a slot whose entry was found right is remembered.
   */
  final class ChunkView {
    private final SegmentMemory memory;
    private final long offset;
    private final UnsafeBuffer buffer;
    private final int shuffleId;
    private final int slots;
    private final int slotsOffset;
    private final int signalsOffset;
    private final int signals;
    private final int heapOffset;
    private final int bytes;
    private final AtomicLongArray verified;

    /**
     * Checks the header and all bounds in it.
     *
     * @throws CatalogException if this is not that chunk
     */
    ChunkView(
        final SegmentMemory memory, final long offset, final int shuffleId, final int position) {
      this.memory = memory;
      this.offset = offset;
      this.shuffleId = shuffleId;
      if (offset < 0
          || (offset & 7) != 0
          || offset > memory.bytes() - (long) ChunkLayout.HEADER_BYTES) {
        throw damaged();
      }
      final UnsafeBuffer header =
          new UnsafeBuffer(memory.address() + offset, ChunkLayout.HEADER_BYTES);
      // Summed over a copy, so that what is checked is what is used.
      final UnsafeBuffer copy = new UnsafeBuffer(new byte[ChunkLayout.CRC_TO]);
      header.getBytes(0, copy, 0, ChunkLayout.CRC_TO);
      final ByteBuffer summed =
          ByteBuffer.wrap(
              copy.byteArray(), ChunkLayout.CRC_FROM, ChunkLayout.CRC_TO - ChunkLayout.CRC_FROM);
      if (copy.getLong(ChunkLayout.MAGIC_OFFSET) != ChunkLayout.MAGIC
          || copy.getInt(ChunkLayout.CRC_OFFSET) != Crc32c.of(summed)
          || copy.getInt(ChunkLayout.VERSION_OFFSET) != ChunkLayout.VERSION
          || copy.getInt(ChunkLayout.SHUFFLE_OFFSET) != shuffleId
          || copy.getInt(ChunkLayout.POSITION_OFFSET) != position
          || copy.getLong(ChunkLayout.INCARNATION_OFFSET) != incarnation) {
        throw damaged();
      }
      bytes = copy.getInt(ChunkLayout.BYTES_OFFSET);
      slots = copy.getInt(ChunkLayout.SLOT_COUNT_OFFSET);
      slotsOffset = copy.getInt(ChunkLayout.SLOTS_OFFSET);
      signalsOffset = copy.getInt(ChunkLayout.SIGNALS_OFFSET);
      signals = copy.getInt(ChunkLayout.SIGNAL_COUNT_OFFSET);
      heapOffset = copy.getInt(ChunkLayout.HEAP_OFFSET);
      if (bytes > memory.bytes() - offset
          || Integer.bitCount(slots) != 1
          || slots < 0
          || signals < 0
          || slotsOffset != ChunkLayout.HEADER_BYTES
          || signalsOffset != slotsOffset + (long) slots * ChunkLayout.SLOT_BYTES
          || heapOffset != signalsOffset + (long) signals * Signal.BYTES
          || heapOffset > bytes) {
        throw damaged();
      }
      buffer = new UnsafeBuffer(memory.address() + offset, bytes);
      verified = new AtomicLongArray(slots);
    }

    /**
     * Finds a map output.
     *
     * @return false if it is not in this chunk
     * @throws CatalogException if its entry is damaged
     */
    boolean find(final long mapId, final EntryCursor cursor) {
      int slot = ChunkLayout.firstSlot(mapId, slots);
      for (int i = 0; i < slots; i++) {
        final int at = slotsOffset + slot * ChunkLayout.SLOT_BYTES;
        final long word = buffer.getLongVolatile(at + ChunkLayout.SLOT_WORD);
        if (word == 0) {
          return false;
        }
        if (buffer.getLong(at + ChunkLayout.SLOT_MAP) == mapId) {
          final long entry = ChunkLayout.entryOffset(word);
          return entry != 0 && open(slot, word, entry, mapId, cursor);
        }
        slot = (slot + 1) & (slots - 1);
      }
      return false;
    }

    /** Tells of each map output of the chunk, and points a cursor at it. */
    void forEachOutput(final EntryCursor cursor, final LongConsumer outputs) {
      for (int slot = 0; slot < slots; slot++) {
        final int at = slotsOffset + slot * ChunkLayout.SLOT_BYTES;
        final long word = buffer.getLongVolatile(at + ChunkLayout.SLOT_WORD);
        final long entry = ChunkLayout.entryOffset(word);
        final long mapId = buffer.getLong(at + ChunkLayout.SLOT_MAP);
        if (entry != 0 && open(slot, word, entry, mapId, cursor)) {
          outputs.accept(mapId);
        }
      }
    }

    private boolean open(
        final int slot,
        final long word,
        final long entry,
        final long mapId,
        final EntryCursor cursor) {
      if (entry < heapOffset || entry > bytes - (long) EntryLayout.HEADER_BYTES) {
        throw damaged();
      }
      final int at = (int) entry;
      final int length = buffer.getInt(at + EntryLayout.BYTES_OFFSET);
      if (length < EntryLayout.HEADER_BYTES || length > bytes - entry) {
        throw damaged();
      }
      if (verified.get(slot) != word) {
        if (!EntryCursor.isIntact(buffer, at, length)) {
          throw damaged();
        }
        verified.set(slot, word);
      }
      if (buffer.getLong(at + EntryLayout.MAP_OFFSET) != mapId
          || buffer.getInt(at + EntryLayout.SHUFFLE_OFFSET) != shuffleId) {
        throw damaged();
      }
      cursor.wrap(this, buffer, entry, length);
      return true;
    }

    /** Returns whether the map output that the cursor points at is complete (acquire). */
    boolean ready(final EntryCursor cursor) {
      return Signal.atLeast(buffer.getIntVolatile(signalOffset(cursor)), cursor.readyEpoch());
    }

    /** The ready signal of the map output that the cursor points at. */
    Signal signal(final Device device, final EntryCursor cursor) {
      return device.signal(memory.segment(), offset + signalOffset(cursor));
    }

    /** The same for streams of a GPU; absent if that cannot reach it. */
    @Nullable Signal signal(final Device device, final Device gpu, final EntryCursor cursor) {
      return memory.signal(device, gpu, offset + signalOffset(cursor));
    }

    private int signalOffset(final EntryCursor cursor) {
      final int signal = cursor.readySignal();
      if (signal < 0 || signal >= signals) {
        throw damaged();
      }
      return signalsOffset + signal * Signal.BYTES;
    }

    /** Segment of the chunk behind this one; meaningful if {@link #nextOffset} is not negative. */
    long nextSegment() {
      return buffer.getLong(ChunkLayout.NEXT_SEGMENT_OFFSET);
    }

    /** Offset of the chunk behind this one (acquire); -1 if there is none yet. */
    long nextOffset() {
      return buffer.getLongVolatile(ChunkLayout.NEXT_CHUNK_OFFSET) - ChunkLayout.NEXT_BIAS;
    }

    String describe() {
      return CatalogView.this.describe(shuffleId);
    }

    private CatalogException damaged() {
      return new CatalogException(
          describe() + " (segment " + memory.id() + ", offset " + offset + ") is damaged");
    }
  }

  /**
   * A reader's view of one shuffle of one owner: its chain of chunks. Thread safe; to be used under
   * a lease, after {@link CatalogView#shuffle} has confirmed it under that lease. A look-up neither
   * locks, allocates nor makes a system call, but for chunks that are seen for the first time.
   */
  public final class ShuffleView {
    private static final int LONGEST_CHAIN = 4096;

    private final RootView.Listing listing;
    private volatile ChunkView[] chunks = {};

    ShuffleView(final RootView.Listing listing) {
      this.listing = listing;
      extend(0, listing.segmentId(), listing.chunkOffset());
    }

    RootView.Listing listing() {
      return listing;
    }

    /**
     * Points the cursor at a map output.
     *
     * @return false if the owner does not list it
     * @throws CatalogException if what was found is damaged
     */
    public boolean find(final long mapId, final EntryCursor cursor) {
      int position = 0;
      for (; ; ) {
        final ChunkView[] known = chunks;
        for (; position < known.length; position++) {
          if (known[position].find(mapId, cursor)) {
            return true;
          }
        }
        final ChunkView last = known[position - 1];
        final long next = last.nextOffset();
        if (next < 0) {
          return false;
        }
        extend(position, last.nextSegment(), next);
      }
    }

    /**
     * Returns the signal that is raised, for the host, when the map output at the cursor is
     * complete.
     */
    public SignalEpoch ready(final Device device, final EntryCursor cursor) {
      return new SignalEpoch(cursor.chunk().signal(device, cursor), cursor.readyEpoch());
    }

    /** The same for streams of a GPU, too; absent if that cannot reach it. */
    public @Nullable SignalEpoch ready(
        final Device device, final Device gpu, final EntryCursor cursor) {
      final Signal signal = cursor.chunk().signal(device, gpu, cursor);
      return signal == null ? null : new SignalEpoch(signal, cursor.readyEpoch());
    }

    /** Returns whether the map output that the cursor points at is complete (acquire). */
    public boolean isReady(final EntryCursor cursor) {
      return cursor.chunk().ready(cursor);
    }

    /**
     * Returns the map outputs that are complete, with the segments in which each lies, its chunk's
     * and all those before it included. Those that cannot be found are left out. Outputs that lie
     * in the same segments share a set, as most do: there may be many of them, and little heap.
     *
     * @throws CatalogException if what was found is damaged
     */
    public Map<Long, Set<Long>> outputs() {
      final Map<Long, Set<Long>> outputs = new HashMap<>();
      final Map<Set<Long>, Set<Long>> shared = new HashMap<>();
      final Set<Long> chain = new HashSet<>(Set.of(listing.segmentId()));
      final EntryCursor cursor = new EntryCursor();
      for (int position = 0; ; position++) {
        final ChunkView chunk = chunks[position];
        chunk.forEachOutput(
            cursor,
            mapId -> {
              if (!outputs.containsKey(mapId) && chunk.ready(cursor)) {
                final Set<Long> segments = new HashSet<>(chain);
                for (int batch = 0; batch < cursor.batches(); batch++) {
                  segments.add(cursor.segmentOf(batch));
                }
                outputs.put(mapId, shared.computeIfAbsent(segments, Set::copyOf));
              }
            });
        final long next = chunk.nextOffset();
        if (next < 0) {
          return outputs;
        }
        chain.add(chunk.nextSegment());
        try {
          extend(position + 1, chunk.nextSegment(), next);
        } catch (final CatalogException e) {
          return outputs; // Nobody finds those behind it, and all find those before.
        }
      }
    }

    private synchronized void extend(final int position, final long segmentId, final long offset) {
      final ChunkView[] known = chunks;
      if (known.length > position) {
        return;
      }
      final SegmentMemory memory = position < LONGEST_CHAIN ? segments.resolve(segmentId) : null;
      if (memory == null) {
        throw new CatalogException(
            describe(listing.shuffleId())
                + ", continues in segment "
                + segmentId
                + ", which is not there");
      }
      final ChunkView[] longer = Arrays.copyOf(known, position + 1);
      longer[position] = new ChunkView(memory, offset, listing.shuffleId(), position);
      chunks = longer;
    }
  }

  /**
   * A chunk: a region of the pool that holds catalog entries of one shuffle. When it is full a
   * larger one is linked behind it; all are freed with the shuffle. In the machine's byte order;
   * written by the owner only.
   *
   * <pre>
   *      0 +----------------------------+----------------------------+
   *        | magic (64)                                              |
   *      8 | CRC32C of bytes 12..63     | layout version             |
   *     16 | shuffle id                 | position in the chain      |
   *     24 | incarnation (64)                                        |
   *     32 | bytes of the chunk         | slots (a power of two)     |
   *     40 | slots offset               | signals offset             |
   *     48 | signals                    | heap offset                |
   *     56 | zero ...                                                |
   *     64 | segment id of the next chunk (64)                       |
   *     72 | 1 + offset of the next chunk (64), 0 while there is none |
   *    128 +---------------------------------------------------------+
   *        | slots, 16 bytes each, open addressing by map id         |
   *        |   0 map id (64)                                         |
   *        |   8 word (64): version (32) | entry offset / 8 (32)     |
   *        +---------------------------------------------------------+
   *        | signals, 8 bytes each: epoch, abort                     |
   *        +---------------------------------------------------------+
   *        | heap: entries, see EntryLayout, multiples of 8 bytes    |
   *        +---------------------------------------------------------+
   * </pre>
   *
   * <p>A word of 0 ends a search. A word with entry offset 0 is a removed output. The version grows
   * with each change of the slot, so a word never comes back within a chunk's life.
   *
   * <p>Memory order: everything of an entry, and the slot's map id, is stored before its word,
   * which is stored with release order and read with acquire order: who sees the word sees the
   * entry. The next chunk's offset is stored with release order after its segment id and its whole
   * header.
   */
  static final class ChunkLayout {
    static final long MAGIC = 0x316b6e7568635a5aL;
    static final int VERSION = 1;

    static final int MAGIC_OFFSET = 0;
    static final int CRC_OFFSET = 8;
    static final int CRC_FROM = 12;
    static final int VERSION_OFFSET = 12;
    static final int SHUFFLE_OFFSET = 16;
    static final int POSITION_OFFSET = 20;
    static final int INCARNATION_OFFSET = 24;
    static final int BYTES_OFFSET = 32;
    static final int SLOT_COUNT_OFFSET = 36;
    static final int SLOTS_OFFSET = 40;
    static final int SIGNALS_OFFSET = 44;
    static final int SIGNAL_COUNT_OFFSET = 48;
    static final int HEAP_OFFSET = 52;
    static final int CRC_TO = 64;
    static final int NEXT_SEGMENT_OFFSET = 64;
    static final int NEXT_CHUNK_OFFSET = 72;
    static final int HEADER_BYTES = 128;

    static final int SLOT_BYTES = 16;
    static final int SLOT_MAP = 0;
    static final int SLOT_WORD = 8;

    /** Keeps a next chunk at offset 0 apart from none. */
    static final long NEXT_BIAS = 1;

    private ChunkLayout() {}

    /** A slot's word. */
    static long word(final int version, final int entryOffset) {
      return (long) version << 32 | (entryOffset >>> 3);
    }

    /** Version of a word. */
    static int version(final long word) {
      return (int) (word >>> 32);
    }

    /** Entry offset of a word, in bytes from the chunk's begin; 0 if the output was removed. */
    static long entryOffset(final long word) {
      return (word & 0xffffffffL) << 3;
    }

    /** Returns the slot at which the search for a map output begins. */
    static int firstSlot(final long mapId, final int slots) {
      return (int) ((mapId * 0x9e3779b97f4a7c15L) >>> 32) & (slots - 1);
    }
  }
}
