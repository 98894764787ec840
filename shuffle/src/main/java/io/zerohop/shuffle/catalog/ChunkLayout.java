package io.zerohop.shuffle.catalog;

/**
 * A chunk: a region of the pool that holds catalog entries of one shuffle. When it is full a larger
 * one is linked behind it; all are freed with the shuffle. In the machine's byte order; written by
 * the owner only.
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
 * <p>Memory order: everything of an entry, and the slot's map id, is stored before its word, which
 * is stored with release order and read with acquire order: who sees the word sees the entry. The
 * next chunk's offset is stored with release order after its segment id and its whole header.
 */
public final class ChunkLayout {
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

  /**
   * An entry: where the blocks of one map output lie. Immutable once its slot's word is stored. In
   * the machine's byte order; a multiple of 8 bytes.
   *
   * <pre>
   *      0 +----------------------------+----------------------------+
   *        | CRC32C of bytes 4..end     | bytes of the entry         |
   *      8 | shuffle id                 | partitions                 |
   *     16 | map id (64)                                             |
   *     24 | ready signal, its index    | ready epoch                |
   *     32 | batches                    | zero                       |
   *     40 +---------------------------------------------------------+
   *        | batch heads, 32 bytes each                              |
   *        |   0 segment id (64)                                     |
   *        |   8 base: offset of the batch in the segment (64)       |
   *        |  16 bytes of the batch     | 20 non-empty blocks        |
   *        |  24 offset of its bitmap   | 28 flags: 1 = block CRCs   |
   *        +---------------------------------------------------------+
   *        | for each batch                                          |
   *        |   bitmap: one bit a partition, in words of 64           |
   *        |   ranks: 32 bits a word, bits set in the words before   |
   *        |   padding to 8                                          |
   *        |   blocks: for each set bit, in partition order          |
   *        |     0 end of the block from the base | 4 its CRC32C     |
   *        +---------------------------------------------------------+
   * </pre>
   *
   * <p>A block begins where the one before it ends. So a non-empty block takes 8 bytes and an empty
   * one a bit and a half; offsets from the base fit 32 bits since no segment is larger than 2 GiB.
   */
  public static final class EntryLayout {
    static final int CRC_OFFSET = 0;
    static final int CRC_FROM = 4;
    static final int BYTES_OFFSET = 4;
    static final int SHUFFLE_OFFSET = 8;
    static final int PARTITIONS_OFFSET = 12;
    static final int MAP_OFFSET = 16;
    static final int READY_SIGNAL_OFFSET = 24;
    static final int READY_EPOCH_OFFSET = 28;
    static final int BATCHES_OFFSET = 32;
    static final int HEADER_BYTES = 40;

    static final int BATCH_BYTES = 32;
    static final int BATCH_SEGMENT = 0;
    static final int BATCH_BASE = 8;
    static final int BATCH_LENGTH = 16;
    static final int BATCH_BLOCKS = 20;
    static final int BATCH_BITMAP = 24;
    static final int BATCH_FLAGS = 28;
    static final int FLAG_CHECKSUMS = 1;

    static final int BLOCK_BYTES = 8;
    static final int BLOCK_END = 0;
    static final int BLOCK_CRC = 4;

    private EntryLayout() {}

    /** 64-bit words of a bitmap. */
    static int words(final int partitions) {
      return (partitions + 63) >>> 6;
    }

    /** Offset of the ranks from the bitmap. */
    static long ranks(final int words) {
      return 8L * words;
    }

    /** Offset of the blocks from the bitmap. */
    static long blocks(final int words) {
      return (12L * words + 7) & -8L;
    }
  }
}
