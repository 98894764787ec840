package io.zerohop.shuffle.catalog;

import io.zerohop.device.Device;
import io.zerohop.device.Signal;
import io.zerohop.shuffle.catalog.CatalogView.CatalogException;
import io.zerohop.shuffle.catalog.ChunkLayout.EntryLayout;
import io.zerohop.shuffle.pool.SegmentMemory;
import java.util.concurrent.atomic.AtomicLongArray;
import org.agrona.concurrent.UnsafeBuffer;
import org.jspecify.annotations.Nullable;

/**
 * A reader's view of one chunk. Lock-free and thread safe; valid under a lease. Entries are summed
 * once: the word of a slot whose entry was found right is remembered.
 */
final class ChunkView {
  private final SegmentMemory memory;
  private final long offset;
  private final UnsafeBuffer buffer;
  private final String owner;
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
      final SegmentMemory memory,
      final long offset,
      final String owner,
      final int shuffleId,
      final int position,
      final long incarnation) {
    this.memory = memory;
    this.offset = offset;
    this.owner = owner;
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
    final java.util.zip.CRC32C crc = new java.util.zip.CRC32C();
    crc.update(copy.byteArray(), ChunkLayout.CRC_FROM, ChunkLayout.CRC_TO - ChunkLayout.CRC_FROM);
    if (copy.getLong(ChunkLayout.MAGIC_OFFSET) != ChunkLayout.MAGIC
        || copy.getInt(ChunkLayout.CRC_OFFSET) != (int) crc.getValue()
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
      if (!EntryImage.isIntact(buffer, at, length)) {
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
    return "the catalog of executor " + owner + ", shuffle " + shuffleId;
  }

  private CatalogException damaged() {
    return new CatalogException(
        describe() + " (segment " + memory.id() + ", offset " + offset + ") is damaged");
  }
}
