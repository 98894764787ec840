package io.zerohop.shuffle.transport.samenode;

import static io.zerohop.shuffle.transport.samenode.LeftBlocks.PART_BYTES;

import io.zerohop.device.Crc32c;
import io.zerohop.device.Undo;
import io.zerohop.device.exchange.OncePerKey;
import io.zerohop.shuffle.catalog.CatalogView.ShuffleView;
import io.zerohop.shuffle.catalog.EntryCursor;
import io.zerohop.shuffle.extent.ExtentWriter;
import io.zerohop.shuffle.pool.SegmentMemory;
import io.zerohop.shuffle.pool.SegmentResolver;
import java.io.EOFException;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collection;
import java.util.List;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.function.BooleanSupplier;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The map outputs of one shuffle that an executor has left, in a file. Nothing of it is mapped, and
 * its index is in the file, too: of each map output only the id is in memory. Owns the file. Thread
 * safe.
 *
 * <pre>
 *  index: one entry for each block, by map output in the order of ids and then by partition
 *    | offset | length | CRC32C of its first part | CRC32C of map id, partition and what is before |
 *      8        8        4                          4
 *  data: blocks, in the order of their entries, each with the CRC32C of its other parts behind it
 * </pre>
 *
 * <p>Numbers are big endian. Checksums come from those that blocks were written to memory with,
 * where there are any. So what was damaged in memory is found here as well, in the first part.
 */
final class LeftFile implements AutoCloseable {
  private static final Logger LOG = LoggerFactory.getLogger(LeftFile.class);
  private static final int ENTRY_BYTES = 2 * Long.BYTES + 2 * Integer.BYTES;
  private static final int READ_BYTES = 64 << 10;
  private static final int SUM_BYTES = Integer.BYTES;

  private final LeftFolder folder;
  private final FileChannel file;
  private final Consumer<IOException> unreadable;
  private final long[] maps;
  private int partitions;
  private long bytes;
  private final OncePerKey damaged = new OncePerKey();
  private final AtomicBoolean isDropped = new AtomicBoolean();

  private record Entry(long offset, long length, int crc) {}

  private LeftFile(
      final LeftFolder folder,
      final FileChannel file,
      final Collection<Long> mapIds,
      final Consumer<IOException> unreadable) {
    this.unreadable = unreadable;
    this.folder = folder;
    this.file = file;
    this.maps = mapIds.stream().mapToLong(id -> id).sorted().toArray();
  }

  /**
   * Writes map outputs.
   *
   * @param to is this one's from now on
   * @param mapIds of complete ones, all in host memory
   * @param segments maps segments, and keeps them mapped meanwhile
   * @param wanted whether to go on, asked for each part
   * @param unreadable hears of each time that the file cannot be read, until it is dropped. What is
   *     damaged can be read
   * @throws IOException if they cannot be written, or are no longer there or wanted
   */
  static LeftFile write(
      final LeftFolder folder,
      final FileChannel to,
      final ShuffleView shuffle,
      final Collection<Long> mapIds,
      final SegmentResolver segments,
      final BooleanSupplier wanted,
      final Consumer<IOException> unreadable)
      throws IOException {
    final LeftFile file = new LeftFile(folder, to, mapIds, unreadable);
    try (Undo undo = new Undo(file)) {
      file.writeAll(shuffle, segments, wanted);
      return undo.keep(file);
    } catch (final UncheckedIOException e) {
      throw e.getCause();
    }
  }

  private void writeAll(
      final ShuffleView shuffle, final SegmentResolver segments, final BooleanSupplier wanted)
      throws IOException {
    final EntryCursor cursor = new EntryCursor();
    find(shuffle, maps[0], cursor);
    partitions = cursor.partitions();
    final int rowBytes = Math.multiplyExact(partitions, ENTRY_BYTES);
    final long indexBytes = (long) rowBytes * maps.length;
    final long all = indexBytes + dataBytes(shuffle, cursor);
    folder.reserve(all); // What has no room is not begun.
    bytes = all;
    file.position(indexBytes);
    long end = indexBytes;
    final ByteBuffer row = ByteBuffer.allocate(rowBytes);
    final ExtentWriter writer = new ExtentWriter(file);
    for (int index = 0; index < maps.length; index++) {
      find(shuffle, maps[index], cursor);
      if (cursor.partitions() != partitions) {
        throw new IOException("map outputs of one shuffle have different numbers of partitions");
      }
      row.clear();
      for (int partition = 0; partition < partitions; partition++) {
        final Parts parts = add(cursor, partition, segments, writer, wanted);
        final Entry entry = new Entry(end, parts.bytes, parts.firstSum());
        row.putLong(entry.offset).putLong(entry.length).putInt(entry.crc);
        row.putInt(checksum(maps[index], partition, entry));
        end += parts.bytes + parts.sumBytes();
      }
      writeFully(row.flip(), (long) rowBytes * index);
    }
    writer.flush();
    if (end != all) {
      throw new IOException("map outputs have changed while they were written");
    }
  }

  private long dataBytes(final ShuffleView shuffle, final EntryCursor cursor) throws IOException {
    long all = 0;
    for (final long mapId : maps) {
      find(shuffle, mapId, cursor);
      for (int partition = 0; partition < cursor.partitions(); partition++) {
        final Parts parts = new Parts();
        for (int batch = 0; batch < cursor.batches(); batch++) {
          parts.bytes += cursor.extent(batch, partition) ? cursor.length() : 0;
        }
        all += parts.bytes + parts.sumBytes();
      }
    }
    return all;
  }

  private static void find(final ShuffleView shuffle, final long mapId, final EntryCursor cursor)
      throws IOException {
    if (!shuffle.find(mapId, cursor)) {
      throw new IOException("map output " + mapId + " is no longer there");
    }
  }

  /** Writes a block, and the checksums of its parts behind the first. */
  private Parts add(
      final EntryCursor cursor,
      final int partition,
      final SegmentResolver segments,
      final ExtentWriter writer,
      final BooleanSupplier wanted)
      throws IOException {
    final Parts parts = new Parts();
    for (int batch = 0; batch < cursor.batches(); batch++) {
      if (cursor.extent(batch, partition)) {
        final SegmentMemory memory = segments.resolve(cursor.segmentId());
        if (memory == null) {
          throw new IOException("segment " + cursor.segmentId() + " is no longer there");
        }
        parts.add(cursor, cursor.address(memory), writer, wanted);
      }
    }
    if (parts.sumBytes() > 0) {
      writer.flush();
      final ByteBuffer sums = ByteBuffer.allocate(parts.sumBytes());
      parts.sums.stream().skip(1).forEach(sums::putInt);
      for (sums.flip(); sums.hasRemaining(); ) {
        file.write(sums);
      }
    }
    return parts;
  }

  /** The parts of a block that is written, and their checksums. */
  private static final class Parts {
    private final List<Integer> sums = new ArrayList<>();
    private long bytes;
    private boolean isDamaged;

    /** Adds the extent at the cursor. */
    void add(
        final EntryCursor cursor,
        final long address,
        final ExtentWriter to,
        final BooleanSupplier wanted)
        throws IOException {
      int whole = 0;
      for (int done = 0; done < cursor.length(); ) {
        if (!wanted.getAsBoolean()) {
          throw new IOException("it was dropped while it was written");
        }
        final int inPart = (int) (bytes % PART_BYTES);
        final int step = Math.min(cursor.length() - done, PART_BYTES - inPart);
        final int sum =
            cursor.checked() && step == cursor.length()
                ? cursor.checksum()
                : Crc32c.of(address + done, step);
        whole = Crc32c.join(whole, sum, step);
        sums.add(inPart == 0 ? sum : Crc32c.join(sums.remove(sums.size() - 1), sum, step));
        to.add(address + done, step);
        bytes += step;
        done += step;
      }
      isDamaged |= cursor.checked() && whole != cursor.checksum();
    }

    /** A wrong one if the block was damaged in memory. */
    int firstSum() {
      final int first = sums.isEmpty() ? 0 : sums.get(0);
      return isDamaged ? ~first : first;
    }

    /** Bytes of the other checksums. */
    int sumBytes() {
      return (int) ((Math.max(1, bytes) - 1) / PART_BYTES) * SUM_BYTES;
    }
  }

  private void writeFully(final ByteBuffer from, final long offset) throws IOException {
    for (long at = offset; from.hasRemaining(); ) {
      at += file.write(from, at);
    }
  }

  private static int checksum(final long mapId, final int partition, final Entry entry) {
    return Crc32c.of(
        ByteBuffer.allocate(3 * Long.BYTES + 2 * Integer.BYTES)
            .putLong(mapId)
            .putInt(partition)
            .putLong(entry.offset)
            .putLong(entry.length)
            .putInt(entry.crc)
            .flip());
  }

  /** Bytes of the file, its index included. */
  long bytes() {
    return bytes;
  }

  /** Map outputs in it. */
  int outputs() {
    return maps.length;
  }

  /** Returns the length of a block; negative if it is not there, or its entry is damaged. */
  long bytes(final long mapId, final int partition) {
    try {
      final Entry entry = entry(mapId, partition);
      return entry == null ? -1 : entry.length;
    } catch (final IOException e) {
      failed(e);
      return -1;
    }
  }

  /** As {@link LeftBlocks#read}. */
  boolean read(final long mapId, final int partition, final long from, final ByteBuffer to) {
    try {
      final Entry entry = entry(mapId, partition);
      if (entry == null
          || from % PART_BYTES != 0
          || from >= Math.max(1, entry.length)
          || to.remaining() != Math.min(PART_BYTES, entry.length - from)) {
        return false;
      }
      final ByteBuffer part = to.duplicate();
      readFully(to, entry.offset + from);
      if (Crc32c.of(part) != (from == 0 ? entry.crc : checksum(entry, from))) {
        logDamaged(mapId);
        return false;
      }
      return true;
    } catch (final IOException e) {
      failed(e);
      return false;
    }
  }

  /** Readers ask for such a block again and again. */
  private void logDamaged(final long mapId) {
    if (damaged.isNew(Long.toString(mapId))) {
      LOG.info("map output {} is damaged in its file (logged once)", mapId);
    }
  }

  private void failed(final IOException cause) {
    if (!isDropped.get()) {
      unreadable.accept(cause);
    }
  }

  private @Nullable Entry entry(final long mapId, final int partition) throws IOException {
    final int index = Arrays.binarySearch(maps, mapId);
    if (index < 0 || partition < 0 || partition >= partitions) {
      return null;
    }
    final ByteBuffer read = ByteBuffer.allocate(ENTRY_BYTES);
    readFully(read, ((long) index * partitions + partition) * ENTRY_BYTES);
    read.flip();
    final Entry entry = new Entry(read.getLong(), read.getLong(), read.getInt());
    if (read.getInt() != checksum(mapId, partition, entry)) {
      logDamaged(mapId);
      return null;
    }
    return entry;
  }

  /** Reads the checksum of a part behind the first. */
  private int checksum(final Entry entry, final long from) throws IOException {
    final ByteBuffer sum = ByteBuffer.allocate(SUM_BYTES);
    readFully(sum, entry.offset + entry.length + (from / PART_BYTES - 1) * SUM_BYTES);
    return sum.getInt(0);
  }

  private void readFully(final ByteBuffer to, final long offset) throws IOException {
    final int end = to.limit();
    for (long at = offset; to.position() < end; ) {
      to.limit(Math.min(end, to.position() + READ_BYTES)); // The JDK keeps a copy of that size.
      final int count = file.read(to, at);
      if (count < 0) {
        throw new EOFException("the file is too short");
      }
      at += count;
    }
  }

  /** Drops it, for {@link LeftFolder#free} to remove. Does not wait. Idempotent. */
  @Override
  public void close() {
    if (!isDropped.getAndSet(true)) {
      folder.dropped(this);
    }
  }

  /** Removes it; reads under way fail. Waits for the disk. */
  void free() {
    try {
      file.close();
    } catch (final IOException e) {
      LOG.info("a file of {} was not closed", folder, e);
    } finally {
      folder.release(bytes);
    }
  }
}
