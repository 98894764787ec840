package io.zerohop.shuffle.catalog;

import io.zerohop.shuffle.catalog.EntryCursor.EntryLayout;
import io.zerohop.shuffle.pool.Region;
import java.util.List;
import java.util.Objects;
import org.agrona.DirectBuffer;
import org.agrona.MutableDirectBuffer;
import org.jspecify.annotations.Nullable;

/**
 * The catalog's future record of one batch: its region, and for each partition the end of its block
 * and its checksum. Filled in partition order by one thread; does not own the region.
 */
public final class BatchImage {
  private final int[] ends;
  private final boolean hasChecksums;
  private final int[] checksums;
  private int filled;
  private int end;
  private int blocks;

  /** There once the batch was packed. */
  private @Nullable Region region;

  /**
   * @param checksums whether each block comes with a checksum
   */
  public BatchImage(final int partitions, final boolean checksums) {
    this.hasChecksums = checksums;
    this.ends = new int[partitions];
    this.checksums = new int[partitions];
  }

  /** Adds the next partition's block; a length of 0 says that it is empty. */
  public void add(final int length, final int checksum) {
    end = Math.addExact(end, length);
    ends[filled] = end;
    checksums[filled] = checksum;
    filled++;
    if (length > 0) {
      blocks++;
    }
  }

  /** Sets the region into which the batch was packed. */
  public void place(final Region where) {
    region = where;
  }

  /** Returns the region into which the batch was packed. */
  public Region region() {
    return Objects.requireNonNull(region, "the batch was not packed");
  }

  /** Bytes of all blocks. */
  public int bytes() {
    return end;
  }

  /** Blocks that are not empty. */
  public int blocks() {
    return blocks;
  }

  /** Returns the begin of a block, from the batch's begin. */
  public int start(final int partition) {
    return partition == 0 ? 0 : ends[partition - 1];
  }

  /** Length of a block; 0 if it is empty. */
  public int length(final int partition) {
    return ends[partition] - start(partition);
  }

  int end(final int partition) {
    return ends[partition];
  }

  /** Returns whether each block comes with a checksum. */
  public boolean checksums() {
    return hasChecksums;
  }

  /** CRC32C of a block; meaningless without {@link #checksums}. */
  public int checksum(final int partition) {
    return checksums[partition];
  }

  /** Writes an entry in the form of {@link EntryLayout} into memory that nobody reads yet. */
  static final class EntryImage {
    private EntryImage() {}

    /** Bytes that the entry of these batches takes; may be more than an int can say. */
    static long bytes(final int partitions, final List<BatchImage> batches) {
      long bytes = EntryLayout.HEADER_BYTES;
      for (final BatchImage batch : batches) {
        bytes += EntryLayout.BATCH_BYTES + tableBytes(partitions, batch);
      }
      return bytes;
    }

    private static long tableBytes(final int partitions, final BatchImage batch) {
      return EntryLayout.blocks(EntryLayout.words(partitions))
          + (long) batch.blocks() * EntryLayout.BLOCK_BYTES;
    }

    /** Writes the entry at an address-aligned offset; its bytes must have been reserved. */
    static void write(
        final MutableDirectBuffer buffer,
        final int offset,
        final int shuffleId,
        final long mapId,
        final int partitions,
        final int readySignal,
        final int readyEpoch,
        final List<BatchImage> batches) {
      final int bytes = Math.toIntExact(bytes(partitions, batches));
      buffer.setMemory(offset, bytes, (byte) 0);
      buffer.putInt(offset + EntryLayout.BYTES_OFFSET, bytes);
      buffer.putInt(offset + EntryLayout.SHUFFLE_OFFSET, shuffleId);
      buffer.putInt(offset + EntryLayout.PARTITIONS_OFFSET, partitions);
      buffer.putLong(offset + EntryLayout.MAP_OFFSET, mapId);
      buffer.putInt(offset + EntryLayout.READY_SIGNAL_OFFSET, readySignal);
      buffer.putInt(offset + EntryLayout.READY_EPOCH_OFFSET, readyEpoch);
      buffer.putInt(offset + EntryLayout.BATCHES_OFFSET, batches.size());
      int head = offset + EntryLayout.HEADER_BYTES;
      int table = EntryLayout.HEADER_BYTES + batches.size() * EntryLayout.BATCH_BYTES;
      for (final BatchImage batch : batches) {
        buffer.putLong(head + EntryLayout.BATCH_SEGMENT, batch.region().memory().id());
        buffer.putLong(head + EntryLayout.BATCH_BASE, batch.region().offset());
        buffer.putInt(head + EntryLayout.BATCH_LENGTH, batch.bytes());
        buffer.putInt(head + EntryLayout.BATCH_BLOCKS, batch.blocks());
        buffer.putInt(head + EntryLayout.BATCH_BITMAP, table);
        buffer.putInt(
            head + EntryLayout.BATCH_FLAGS, batch.checksums() ? EntryLayout.FLAG_CHECKSUMS : 0);
        writeTable(buffer, offset + table, partitions, batch);
        head += EntryLayout.BATCH_BYTES;
        table += (int) tableBytes(partitions, batch);
      }
      buffer.putInt(offset + EntryLayout.CRC_OFFSET, EntryCursor.checksum(buffer, offset, bytes));
    }

    /**
     * Writes an entry once more, whose batches lie elsewhere now. It has been found to be intact,
     * or damage would get a new checksum.
     *
     * @param regions of its batches, in order
     */
    static void move(
        final DirectBuffer from,
        final int fromOffset,
        final int bytes,
        final MutableDirectBuffer to,
        final int toOffset,
        final int readySignal,
        final List<Region> regions) {
      to.putBytes(toOffset, from, fromOffset, bytes);
      to.putInt(toOffset + EntryLayout.READY_SIGNAL_OFFSET, readySignal);
      int head = toOffset + EntryLayout.HEADER_BYTES;
      for (final Region region : regions) {
        to.putLong(head + EntryLayout.BATCH_SEGMENT, region.memory().id());
        to.putLong(head + EntryLayout.BATCH_BASE, region.offset());
        head += EntryLayout.BATCH_BYTES;
      }
      to.putInt(toOffset + EntryLayout.CRC_OFFSET, EntryCursor.checksum(to, toOffset, bytes));
    }

    private static void writeTable(
        final MutableDirectBuffer buffer,
        final int bitmap,
        final int partitions,
        final BatchImage batch) {
      final int words = EntryLayout.words(partitions);
      final int ranks = bitmap + (int) EntryLayout.ranks(words);
      int block = bitmap + (int) EntryLayout.blocks(words);
      int rank = 0;
      for (int word = 0; word < words; word++) {
        long bits = 0;
        buffer.putInt(ranks + 4 * word, rank);
        final int last = Math.min(partitions, (word + 1) << 6);
        for (int partition = word << 6; partition < last; partition++) {
          if (batch.length(partition) > 0) {
            bits |= 1L << partition;
            buffer.putInt(block + EntryLayout.BLOCK_END, batch.end(partition));
            buffer.putInt(block + EntryLayout.BLOCK_CRC, batch.checksum(partition));
            block += EntryLayout.BLOCK_BYTES;
            rank++;
          }
        }
        buffer.putLong(bitmap + 8 * word, bits);
      }
    }
  }
}
