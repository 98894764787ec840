package io.zerohop.device.cuda;

import io.zerohop.device.RowHashBatch;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import jcuda.Pointer;

/**
 * {@code struct RowHash} of rowhash.cuh and the lists that it names, which are written to pinned
 * memory: some of the tables of a batch. For one launch.
 */
final class RowHashArguments {
  private static final int STRUCT_BYTES = 24;
  private static final int COLUMN_BYTES = 32;
  private static final int CHUNK_BYTES = 32;
  private static final int KIND_BITS = 2;

  private final RowHashBatch lists;
  private final int first;
  private final int end;
  private final byte[] struct = new byte[STRUCT_BYTES];

  /**
   * As many tables as fit, but at least one.
   *
   * @param first of the tables
   * @param mostBytes that their lists may take
   */
  RowHashArguments(final RowHashBatch lists, final int first, final int mostBytes) {
    this.lists = lists;
    this.first = first;
    int next = first + 1;
    while (next < lists.tables() && bytes(lists, first, next + 1) <= mostBytes) {
      next++;
    }
    this.end = next;
  }

  private static long bytes(final RowHashBatch lists, final int first, final int end) {
    return (long) COLUMN_BYTES * (lists.endOfColumns(end - 1) - lists.firstColumn(first))
        + (long) CHUNK_BYTES * (lists.endOfResults(end - 1) - lists.firstResult(first));
  }

  /** Bytes of pinned memory that the lists take. */
  int bytes() {
    return Math.toIntExact(bytes(lists, first, end));
  }

  /** The table behind the last one. */
  int end() {
    return end;
  }

  /** Returns the number of chunks of rows; each keeps a thread block busy. */
  int chunks() {
    return lists.endOfResults(end - 1) - lists.firstResult(first);
  }

  /**
   * Writes the lists.
   *
   * @param to pinned memory, of which {@link #bytes} are taken
   * @param at offset in it, a multiple of 16
   * @param address the GPU's address of that offset
   * @param results where the batch's first result goes
   */
  void write(final ByteBuffer to, final int at, final long address, final long results) {
    final int firstColumn = lists.firstColumn(first);
    final int columns = lists.endOfColumns(end - 1) - firstColumn;
    for (int i = 0; i < columns; i++) {
      column(to, at + i * COLUMN_BYTES, firstColumn + i);
    }
    int chunk = at + columns * COLUMN_BYTES;
    for (int table = first; table < end; table++) {
      for (int i = lists.firstResult(table); i < lists.endOfResults(table); i++) {
        final int row = (i - lists.firstResult(table)) * lists.chunkRows(table);
        to.putLong(chunk, results + (long) Long.BYTES * i);
        to.putInt(chunk + 8, lists.firstColumn(table) - firstColumn);
        to.putInt(chunk + 12, lists.endOfColumns(table) - lists.firstColumn(table));
        to.putInt(chunk + 16, lists.top(table));
        to.putInt(chunk + 20, lists.firstRow(table) + row);
        to.putInt(chunk + 24, Math.min(lists.chunkRows(table), lists.rows(table) - row));
        chunk += CHUNK_BYTES;
      }
    }
    ByteBuffer.wrap(struct)
        .order(ByteOrder.nativeOrder())
        .putLong(address)
        .putLong(address + (long) columns * COLUMN_BYTES)
        .putInt(chunks());
  }

  private void column(final ByteBuffer to, final int at, final int column) {
    to.putLong(at, lists.data(column));
    to.putLong(at + 8, lists.offsets(column));
    to.putLong(at + 16, lists.mask(column));
    to.putInt(at + 24, lists.kind(column) | lists.detail(column) << KIND_BITS);
    to.putInt(at + 28, lists.end(column));
  }

  Pointer struct() {
    return Pointer.to(struct);
  }
}
