package io.zerohop.device.host;

import io.zerohop.device.HashMix;
import io.zerohop.device.RowHashBatch;
import io.zerohop.device.RowHashLists;
import org.agrona.UnsafeAccess;

/** Hashes rows of columns in shared host memory, on the calling thread. */
final class HostRowHash {
  private final RowHashLists lists;
  private final int first;

  private HostRowHash(final RowHashLists lists, final int table) {
    this.lists = lists;
    this.first = lists.firstColumn(table);
  }

  static void run(final RowHashLists lists, final long resultAddress) {
    for (int table = 0; table < lists.tables(); table++) {
      final HostRowHash hash = new HostRowHash(lists, table);
      int row = lists.firstRow(table);
      final int behind = row + lists.rows(table);
      for (int i = lists.firstResult(table); i < lists.endOfResults(table); i++) {
        final int end = (int) Math.min(behind, (long) row + lists.chunkRows(table));
        long sum = 0;
        for (; row < end; row++) {
          sum += hash.sequence(RowHashBatch.ROW, hash.first, lists.top(table), row);
        }
        UnsafeAccess.UNSAFE.putLong(resultAddress + (long) Long.BYTES * i, sum);
      }
    }
  }

  /** Columns beside each other: those of a row, or the fields of a struct. */
  private long sequence(final long begin, final int from, final int count, final int row) {
    long hash = begin;
    int column = from;
    for (int i = 0; i < count; i++) {
      hash = HashMix.combine(hash, value(column, row));
      column = first + lists.end(column);
    }
    return hash;
  }

  private long value(final int column, final int row) {
    if (isNull(lists.mask(column), row)) {
      return RowHashBatch.NULL;
    }
    return switch (lists.kind(column)) {
      case RowHashLists.KIND_FIXED -> fixed(lists.detail(column), lists.data(column), row);
      case RowHashLists.KIND_STRING -> string(column, row);
      case RowHashLists.KIND_LIST -> list(column, row);
      default -> sequence(RowHashBatch.STRUCT, column + 1, lists.detail(column), row);
    };
  }

  private static boolean isNull(final long mask, final int row) {
    return mask != 0
        && (UnsafeAccess.UNSAFE.getInt(mask + 4L * (row / Integer.SIZE)) >>> row & 1) == 0;
  }

  private static long fixed(final int width, final long data, final int row) {
    final long at = data + (long) width * row;
    final long begin = RowHashBatch.FIXED + width;
    if (width > Long.BYTES) {
      return HashMix.combine(
          HashMix.combine(begin, UnsafeAccess.UNSAFE.getLong(at)),
          UnsafeAccess.UNSAFE.getLong(at + Long.BYTES));
    }
    return HashMix.combine(begin, bytes(at, width));
  }

  /** At most eight bytes as a little-endian number. */
  private static long bytes(final long at, final int count) {
    long value = 0;
    for (int i = 0; i < count; i++) {
      value |= (UnsafeAccess.UNSAFE.getByte(at + i) & 0xffL) << Byte.SIZE * i;
    }
    return value;
  }

  private int offset(final int column, final int row) {
    return UnsafeAccess.UNSAFE.getInt(lists.offsets(column) + 4L * row);
  }

  private long string(final int column, final int row) {
    final int begin = offset(column, row);
    final int end = offset(column, row + 1);
    long hash = HashMix.combine(RowHashBatch.STRING, end - begin);
    for (long at = begin; at < end; at += Long.BYTES) {
      final int count = (int) Math.min(Long.BYTES, end - at);
      hash = HashMix.combine(hash, bytes(lists.data(column) + at, count));
    }
    return hash;
  }

  private long list(final int column, final int row) {
    final int begin = offset(column, row);
    final int end = offset(column, row + 1);
    long hash = HashMix.combine(RowHashBatch.LIST, end - begin);
    for (int item = begin; item < end; item++) {
      hash = HashMix.combine(hash, value(column + 1, item));
    }
    return hash;
  }
}
