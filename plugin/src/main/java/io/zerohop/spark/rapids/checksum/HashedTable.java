package io.zerohop.spark.rapids.checksum;

import io.zerohop.device.RowHashBatch;
import io.zerohop.spark.rapids.format.PackedColumns;

/**
 * Describes the columns of one packed table to a device that hashes their rows. What a column is
 * made of decides, not how cudf has laid it out: a table without any item in its lists hashes as
 * one that has some.
 */
final class HashedTable {
  private final PackedColumns columns;
  private final long address;
  private final RowHashBatch batch;

  private HashedTable(final PackedColumns columns, final long address, final RowHashBatch batch) {
    this.columns = columns;
    this.address = address;
    this.batch = batch;
  }

  /**
   * Adds a table.
   *
   * @param address where its bytes lie
   * @return whether its columns are of kinds that are known; if not, the batch can only be cleared
   */
  static boolean add(
      final PackedColumns columns, final long address, final int slot, final RowHashBatch batch) {
    if (columns.entries() > RowHashBatch.MAX_COLUMNS) {
      return false;
    }
    batch.beginTable(columns.rows(0), columns.columns(), slot);
    return new HashedTable(columns, address, batch).all(0, columns.columns(), 0);
  }

  /** Columns beside each other. */
  private boolean all(final int first, final int count, final int depth) {
    int entry = first;
    for (int i = 0; i < count; i++) {
      if (!column(entry, depth)) {
        return false;
      }
      entry = columns.end(entry);
    }
    return true;
  }

  private boolean column(final int entry, final int depth) {
    if (columns.rows(entry) == 0) {
      batch.addFixed(1, 0, 0); // Below lists without items: nobody comes here.
      return true;
    }
    final int nulls = columns.nulls(entry);
    final long mask = nulls == 0 ? 0 : at(columns.mask(entry));
    final boolean within = depth < RowHashBatch.MAX_DEPTH;
    if (nulls > 0 && mask == 0) {
      return false;
    }
    return switch (columns.type(entry)) {
      case PackedColumns.STRING -> strings(entry, mask);
      case PackedColumns.LIST -> within && lists(entry, mask, depth);
      case PackedColumns.STRUCT -> {
        if (within) {
          batch.beginStruct(columns.children(entry), mask);
        }
        yield within && all(entry + 1, columns.children(entry), depth + 1);
      }
      default -> values(entry, mask);
    };
  }

  /** An address; 0 if there is none. */
  private long at(final long offset) {
    return offset < 0 ? 0 : address + offset;
  }

  private boolean values(final int entry, final long mask) {
    final int width = PackedColumns.width(columns.type(entry));
    if (width == 0 || columns.children(entry) != 0 || columns.data(entry) < 0) {
      return false;
    }
    batch.addFixed(width, at(columns.data(entry)), mask);
    return true;
  }

  private boolean strings(final int entry, final long mask) {
    if (columns.boundIndex(entry) < 0) {
      return false;
    }
    batch.addString(at(columns.data(entry)), at(columns.data(entry + 1)), mask);
    return true;
  }

  private boolean lists(final int entry, final long mask, final int depth) {
    if (columns.boundIndex(entry) < 0) {
      return false;
    }
    batch.beginList(at(columns.data(entry + 1)), mask);
    return column(columns.end(entry + 1), depth + 1);
  }
}
