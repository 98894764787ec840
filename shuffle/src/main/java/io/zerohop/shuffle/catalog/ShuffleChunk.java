package io.zerohop.shuffle.catalog;

import io.zerohop.device.Crc32c;
import io.zerohop.device.Device;
import io.zerohop.device.Signal;
import io.zerohop.shuffle.catalog.BatchImage.EntryImage;
import io.zerohop.shuffle.catalog.Catalog.OwnOutput;
import io.zerohop.shuffle.catalog.CatalogView.ChunkLayout;
import io.zerohop.shuffle.catalog.EntryCursor.EntryLayout;
import io.zerohop.shuffle.pool.Region;
import java.util.List;
import org.agrona.concurrent.UnsafeBuffer;
import org.jspecify.annotations.Nullable;

/**
 * The owner's side of one chunk: appends entries and sets slots. Guarded by the catalog's lock.
 * Layout: {@link ChunkLayout}.
 */
final class ShuffleChunk {
  /** The epoch at which a map output is ready; its signal starts at 0 with the chunk. */
  static final int READY_EPOCH = 1;

  private final Region region;
  private final UnsafeBuffer buffer;
  private final int shuffleId;
  private final int slots;
  private final int slotsOffset;
  private final int signalsOffset;
  private final int signals;
  private final int bytes;
  private final UnsafeBuffer header;
  private int heapEnd;
  private int usedSignals;
  private int usedSlots;

  /** Initialises a chunk for so many entries; nobody may read the region yet. */
  ShuffleChunk(
      final Region region,
      final int shuffleId,
      final int position,
      final long incarnation,
      final int entries) {
    this.region = region;
    this.shuffleId = shuffleId;
    this.slots = slots(entries);
    this.signals = entries;
    this.slotsOffset = ChunkLayout.HEADER_BYTES;
    this.signalsOffset = slotsOffset + slots * ChunkLayout.SLOT_BYTES;
    this.heapEnd = signalsOffset + signals * Signal.BYTES;
    this.bytes = (int) region.bytes();
    this.buffer = new UnsafeBuffer(region.address(), bytes);
    buffer.setMemory(0, heapEnd, (byte) 0); // Entries are written as a whole.
    buffer.putLong(ChunkLayout.MAGIC_OFFSET, ChunkLayout.MAGIC);
    buffer.putInt(ChunkLayout.VERSION_OFFSET, ChunkLayout.VERSION);
    buffer.putInt(ChunkLayout.SHUFFLE_OFFSET, shuffleId);
    buffer.putInt(ChunkLayout.POSITION_OFFSET, position);
    buffer.putLong(ChunkLayout.INCARNATION_OFFSET, incarnation);
    buffer.putInt(ChunkLayout.BYTES_OFFSET, bytes);
    buffer.putInt(ChunkLayout.SLOT_COUNT_OFFSET, slots);
    buffer.putInt(ChunkLayout.SLOTS_OFFSET, slotsOffset);
    buffer.putInt(ChunkLayout.SIGNALS_OFFSET, signalsOffset);
    buffer.putInt(ChunkLayout.SIGNAL_COUNT_OFFSET, signals);
    buffer.putInt(ChunkLayout.HEAP_OFFSET, heapEnd);
    buffer.putInt(
        ChunkLayout.CRC_OFFSET,
        Crc32c.of(
            region.address() + ChunkLayout.CRC_FROM, ChunkLayout.CRC_TO - ChunkLayout.CRC_FROM));
    this.header = new UnsafeBuffer(new byte[ChunkLayout.HEADER_BYTES]);
    buffer.getBytes(0, header, 0, ChunkLayout.HEADER_BYTES);
  }

  /**
   * Writes the header again if it is not as it was written. Map outputs that Spark makes again
   * after a FetchFailed land in the same chunk, so damage to its header must not outlive them.
   */
  void restoreHeader() {
    for (int at = 0; at < ChunkLayout.HEADER_BYTES; at += Long.BYTES) {
      final long wanted = header.getLong(at);
      if (buffer.getLongVolatile(at) != wanted) {
        buffer.putLongVolatile(at, wanted);
      }
    }
  }

  /** Bytes of a chunk with room for so many entries of this size. */
  static long bytes(final int entries, final long entryBytes) {
    return ChunkLayout.HEADER_BYTES
        + (long) slots(entries) * ChunkLayout.SLOT_BYTES
        + (long) entries * Signal.BYTES
        + entries * entryBytes;
  }

  /** At most half of the slots are ever used, so that searches stay short. */
  private static int slots(final int entries) {
    return Integer.highestOneBit(2 * entries - 1) << 1;
  }

  Region region() {
    return region;
  }

  boolean hasRoom(final long entryBytes) {
    return usedSignals < signals && 2 * usedSlots < slots && bytes - heapEnd >= entryBytes;
  }

  /** Writes an entry that nobody can find yet; returns its offset. */
  int append(final long mapId, final int partitions, final List<BatchImage> batches) {
    final int offset = heapEnd;
    final int signal = usedSignals++;
    EntryImage.write(buffer, offset, shuffleId, mapId, partitions, signal, READY_EPOCH, batches);
    heapEnd += (int) EntryImage.bytes(partitions, batches);
    return offset;
  }

  /**
   * Writes an intact entry once more, of this chunk or another, whose batches lie elsewhere now.
   */
  int append(final OwnOutput.Entry entry, final List<Region> regions) {
    final int offset = heapEnd;
    EntryImage.move(
        entry.chunk().buffer,
        entry.offset(),
        entry.bytes(),
        buffer,
        offset,
        usedSignals++,
        regions);
    heapEnd += entry.bytes();
    return offset;
  }

  /** Returns whether the entry of so many bytes at this offset is what was written. */
  boolean isIntact(final int entryOffset, final int entryBytes) {
    return buffer.getInt(entryOffset + EntryLayout.BYTES_OFFSET) == entryBytes
        && EntryCursor.isIntact(buffer, entryOffset, entryBytes);
  }

  /** Points a cursor at the entry of so many bytes at this offset. */
  void open(final int entryOffset, final int entryBytes, final EntryCursor cursor) {
    cursor.wrap(null, buffer, entryOffset, entryBytes);
  }

  /** The signal that the entry has that is appended next. */
  int nextSignal() {
    return usedSignals;
  }

  /** A signal of an entry; its number is not read from memory that peers may write to. */
  Signal signal(final Device device, final int signal) {
    return device.signal(region.memory().segment(), region.offset() + signalOffset(signal));
  }

  /** The same for streams of a GPU, too; absent if that cannot reach it. */
  @Nullable Signal signal(final Device device, final Device gpu, final int signal) {
    return region.memory().signal(device, gpu, region.offset() + signalOffset(signal));
  }

  private int signalOffset(final int signal) {
    return signalsOffset + signal * Signal.BYTES;
  }

  /** Makes the entry findable (release). */
  void publish(final long mapId, final int entryOffset) {
    final int slot = slotOf(mapId);
    if (buffer.getLong(slot + ChunkLayout.SLOT_WORD) == 0) {
      usedSlots++;
      buffer.putLong(slot + ChunkLayout.SLOT_MAP, mapId);
    }
    setWord(slot, entryOffset);
  }

  /** Makes a map output unfindable; who found it before goes on reading it. */
  void unpublish(final long mapId) {
    final int slot = slotOf(mapId);
    if (buffer.getLong(slot + ChunkLayout.SLOT_WORD) != 0) {
      setWord(slot, 0);
    }
  }

  private void setWord(final int slot, final int entryOffset) {
    final int version = ChunkLayout.version(buffer.getLong(slot + ChunkLayout.SLOT_WORD)) + 1;
    buffer.putLongVolatile(slot + ChunkLayout.SLOT_WORD, ChunkLayout.word(version, entryOffset));
  }

  /** Links the next chunk behind this one (release). */
  void link(final ShuffleChunk next) {
    header.putLong(ChunkLayout.NEXT_SEGMENT_OFFSET, next.region.memory().id());
    header.putLong(ChunkLayout.NEXT_CHUNK_OFFSET, next.region.offset() + ChunkLayout.NEXT_BIAS);
    buffer.putLong(
        ChunkLayout.NEXT_SEGMENT_OFFSET, header.getLong(ChunkLayout.NEXT_SEGMENT_OFFSET));
    buffer.putLongVolatile(
        ChunkLayout.NEXT_CHUNK_OFFSET, header.getLong(ChunkLayout.NEXT_CHUNK_OFFSET));
  }

  private int slotOf(final long mapId) {
    int slot = ChunkLayout.firstSlot(mapId, slots);
    for (; ; ) {
      final int offset = slotsOffset + slot * ChunkLayout.SLOT_BYTES;
      if (buffer.getLong(offset + ChunkLayout.SLOT_WORD) == 0
          || buffer.getLong(offset + ChunkLayout.SLOT_MAP) == mapId) {
        return offset;
      }
      slot = (slot + 1) & (slots - 1);
    }
  }
}
