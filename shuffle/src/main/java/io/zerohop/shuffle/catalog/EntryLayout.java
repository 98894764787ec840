package io.zerohop.shuffle.catalog;

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
public final class EntryLayout {
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
