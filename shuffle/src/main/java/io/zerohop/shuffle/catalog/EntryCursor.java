package io.zerohop.shuffle.catalog;

import io.zerohop.device.Crc32c;
import io.zerohop.shuffle.catalog.CatalogView.CatalogException;
import io.zerohop.shuffle.catalog.CatalogView.ChunkView;
import io.zerohop.shuffle.extent.ExtentList;
import io.zerohop.shuffle.pool.Devices;
import io.zerohop.shuffle.pool.SegmentMemory;
import org.agrona.DirectBuffer;
import org.agrona.concurrent.UnsafeBuffer;
import org.jspecify.annotations.Nullable;

/**
 * Points at one entry and, in it, at one extent of a block. Reused for many look-ups; does not
 * allocate. Belongs to one thread and is valid under the lease under which it was filled.
 *
 * <p>Every number that is read from shared memory is checked against the bounds of what it points
 * into before it is used, each time, so damage ends in a {@link CatalogException} and never in a
 * fault.
 */
public final class EntryCursor {
  private static final UnsafeBuffer NOTHING = new UnsafeBuffer(new byte[0]);

  /** Absent on an own entry. */
  private @Nullable ChunkView chunk;

  private UnsafeBuffer buffer = NOTHING;
  private long begin;
  private long bytes;
  private int partitions;
  private int batches;

  private long segmentId;
  private long extentOffset;
  private int extentLength;
  private int extentChecksum;
  private boolean extentChecked;

  /** Returns whether the checksum of an entry is right. */
  static boolean isIntact(final DirectBuffer buffer, final int offset, final int bytes) {
    return checksum(buffer, offset, bytes) == buffer.getInt(offset + EntryLayout.CRC_OFFSET);
  }

  /** Returns the checksum that an entry of so many bytes carries. */
  static int checksum(final DirectBuffer buffer, final int offset, final int bytes) {
    return Crc32c.of(
        buffer.addressOffset() + offset + EntryLayout.CRC_FROM, bytes - EntryLayout.CRC_FROM);
  }

  /** Points the cursor at an entry whose bytes all lie in the chunk; the owner needs no view. */
  void wrap(
      final @Nullable ChunkView view,
      final UnsafeBuffer bytesOfChunk,
      final long offset,
      final int length) {
    chunk = view;
    buffer = bytesOfChunk;
    begin = offset;
    bytes = length;
    partitions = getInt(EntryLayout.PARTITIONS_OFFSET);
    batches = getInt(EntryLayout.BATCHES_OFFSET);
  }

  /** Partitions of the map output. */
  public int partitions() {
    return partitions;
  }

  /** Batches of the map output; a block has at most one extent in each. */
  public int batches() {
    return batches;
  }

  /** Index of the ready signal in its chunk. */
  int readySignal() {
    return getInt(EntryLayout.READY_SIGNAL_OFFSET);
  }

  int readyEpoch() {
    return getInt(EntryLayout.READY_EPOCH_OFFSET);
  }

  /** The chunk of a peer's entry. */
  ChunkView chunk() {
    final ChunkView view = chunk;
    if (view == null) {
      throw new IllegalStateException("an own entry is not read by a view");
    }
    return view;
  }

  /**
   * Moves to the extent that a block has in a batch.
   *
   * @return false if it has none there
   * @throws CatalogException if the entry is damaged or has no such partition
   */
  public boolean extent(final int batch, final int partition) {
    if (partition < 0 || partition >= partitions || batch < 0 || batch >= batches) {
      throw damaged("has no partition " + partition + " in batch " + batch);
    }
    final long head = EntryLayout.HEADER_BYTES + (long) batch * EntryLayout.BATCH_BYTES;
    final long bitmap = getInt(head + EntryLayout.BATCH_BITMAP) & 0xffffffffL;
    final int words = EntryLayout.words(partitions);
    final int word = partition >>> 6;
    final long bits = getLong(bitmap + 8L * word);
    final long bit = 1L << partition;
    if ((bits & bit) == 0) {
      return false;
    }
    final int rank =
        getInt(bitmap + EntryLayout.ranks(words) + 4L * word) + Long.bitCount(bits & (bit - 1));
    if (rank < 0 || rank >= getInt(head + EntryLayout.BATCH_BLOCKS)) {
      throw damaged("has a rank out of bounds");
    }
    final long block = bitmap + EntryLayout.blocks(words) + (long) rank * EntryLayout.BLOCK_BYTES;
    final int start = rank == 0 ? 0 : getInt(block - EntryLayout.BLOCK_BYTES);
    final int end = getInt(block + EntryLayout.BLOCK_END);
    if (start < 0 || end <= start || end > getInt(head + EntryLayout.BATCH_LENGTH)) {
      throw damaged("has a block that ends before it begins");
    }
    segmentId = getLong(head + EntryLayout.BATCH_SEGMENT);
    extentOffset = getLong(head + EntryLayout.BATCH_BASE) + start;
    extentLength = end - start;
    extentChecksum = getInt(block + EntryLayout.BLOCK_CRC);
    extentChecked = (getInt(head + EntryLayout.BATCH_FLAGS) & EntryLayout.FLAG_CHECKSUMS) != 0;
    return true;
  }

  /** Segment of a batch. */
  long segmentOf(final int batch) {
    return getLong(
        EntryLayout.HEADER_BYTES
            + (long) batch * EntryLayout.BATCH_BYTES
            + EntryLayout.BATCH_SEGMENT);
  }

  /** Segment of the current extent. */
  public long segmentId() {
    return segmentId;
  }

  /** Offset of the current extent in its segment. */
  public long offset() {
    return extentOffset;
  }

  /** Length of the current extent in bytes, positive. */
  public int length() {
    return extentLength;
  }

  /** Returns whether the current extent carries a checksum. */
  public boolean checked() {
    return extentChecked;
  }

  /** CRC32C of the current extent; meaningless unless {@link #checked}. */
  public int checksum() {
    return extentChecksum;
  }

  /**
   * Address of the current extent in this process.
   *
   * @param memory the segment of {@link #segmentId}
   * @throws CatalogException if the extent does not lie within it
   */
  public long address(final SegmentMemory memory) {
    if (extentOffset < 0 || extentOffset > memory.bytes() - (long) extentLength) {
      throw damaged("points out of segment " + segmentId);
    }
    return memory.address() + extentOffset;
  }

  /**
   * Adds the current extent to a list, with its checksum if it carries one.
   *
   * @param memory the segment of {@link #segmentId}
   * @param devices say whether the host reads it there
   * @throws CatalogException if the extent does not lie within it
   */
  public void addTo(final ExtentList extents, final SegmentMemory memory, final Devices devices) {
    final boolean deviceOnly = !devices.hostAccessible(memory);
    extents.add(address(memory), extentLength, deviceOnly, memory, extentChecked, extentChecksum);
  }

  private int getInt(final long offset) {
    return buffer.getInt(checked(offset, 4));
  }

  private long getLong(final long offset) {
    return buffer.getLong(checked(offset, 8));
  }

  private int checked(final long offset, final int length) {
    if (offset < 0 || offset > bytes - length) {
      throw damaged("points out of itself");
    }
    return (int) (begin + offset);
  }

  private CatalogException damaged(final String what) {
    return new CatalogException(
        "an entry of " + (chunk == null ? "this executor" : chunk.describe()) + " " + what);
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
  static final class EntryLayout {
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
