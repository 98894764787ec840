package io.zerohop.spark.rapids.format;

import io.zerohop.device.CopyBatch;
import io.zerohop.device.SpliceBatch;
import io.zerohop.spark.rapids.format.TableHeader.PackedTable;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * A plan for joining packed tables of one kind into one: the place of each piece of each column,
 * and the metadata of the whole. So tables that come from many map outputs are gathered right into
 * place, instead of being gathered first and concatenated then. For one thread.
 */
public final class TableAssembly {
  private static final int ALIGNMENT = 64;
  private static final int MAX_PIECES = 100_000;

  private final PackedColumns[] tables;
  private final int[][] bounds;
  private final List<Piece> copies = new ArrayList<>();
  private final List<Piece> offsets = new ArrayList<>();
  private final List<BitColumn> bits = new ArrayList<>();
  private ByteBuffer metadata;
  private long bytes;

  /** Bytes to copy, or offsets to add {@code delta} to; addresses count from table and result. */
  private record Piece(int table, long source, long destination, long count, int delta) {}

  /** Rows of one table and the offset of their mask; -1 if all of them are valid. */
  private record BitRun(int table, long source, int count) {}

  private record BitColumn(long destination, List<BitRun> runs) {}

  private TableAssembly(final PackedColumns[] tables, final int[][] bounds, final int entries) {
    this.tables = tables;
    this.bounds = bounds;
    this.metadata = direct(entries);
  }

  private ByteBuffer direct(final int entries) {
    return ByteBuffer.allocateDirect(tables[0].header().bytes(entries))
        .order(ByteOrder.nativeOrder());
  }

  /**
   * Plans it.
   *
   * @return null if these tables cannot be put together so: cudf has to concatenate them
   */
  public static @Nullable TableAssembly plan(final List<PackedTable> parts) {
    final PackedColumns[] tables = new PackedColumns[parts.size()];
    final int[][] bounds = new int[parts.size()][];
    int entries = 0;
    for (int i = 0; i < tables.length; i++) {
      tables[i] = PackedColumns.parse(parts.get(i).metadata());
      bounds[i] = parts.get(i).bounds();
      if (tables[i] == null
          || tables[i].header() != tables[0].header()
          || tables[i].version() != tables[0].version()
          || tables[i].columns() != tables[0].columns()
          || bounds[i].length != 2 * tables[i].bounded().size()) {
        return null;
      }
      entries = Math.max(entries, tables[i].entries());
    }
    final TableAssembly plan = new TableAssembly(tables, bounds, entries);
    return plan.all() ? plan : null;
  }

  private boolean all() {
    final int columns = tables[0].columns();
    long rows = 0;
    for (final PackedColumns table : tables) {
      rows += table.rows(0);
    }
    if (rows >= Integer.MAX_VALUE) {
      return false;
    }
    tables[0].header().put(metadata, tables[0].version(), columns, (int) rows);
    final int[] at = new int[tables.length];
    for (int column = 0; column < columns; column++) {
      if (!column(at)) {
        return false;
      }
      for (int table = 0; table < at.length; table++) {
        at[table] = tables[table].end(at[table]);
      }
    }
    metadata.flip();
    int runs = 0;
    for (final BitColumn column : bits) {
      runs += column.runs.size();
    }
    return copies.size() + offsets.size() + runs <= MAX_PIECES;
  }

  private void put(
      final int type,
      final int scale,
      final int rows,
      final int nulls,
      final long data,
      final long mask,
      final int children) {
    if (!metadata.hasRemaining()) {
      // A column that is empty in one table may have more below it in another.
      metadata = direct(2 * (metadata.capacity() / PackedColumns.ENTRY_BYTES)).put(metadata.flip());
    }
    PackedColumns.put(metadata, type, scale, rows, nulls, data, mask, children);
  }

  private boolean hasRows(final int[] at, final int table) {
    return at[table] >= 0 && tables[table].rows(at[table]) > 0;
  }

  /**
   * One column.
   *
   * @param at its entry in each table; -1 where it has none
   */
  private boolean column(final int[] at) {
    int first = 0;
    while (first < at.length && !hasRows(at, first)) {
      first++;
    }
    if (first == at.length) {
      return false; // There is nothing to see what it looks like.
    }
    final int type = tables[first].type(at[first]);
    final int scale = tables[first].scale(at[first]);
    final int children = tables[first].children(at[first]);
    long rows = 0;
    long nulls = 0;
    for (int table = first; table < at.length; table++) {
      if (hasRows(at, table)) {
        final PackedColumns columns = tables[table];
        final int entry = at[table];
        if (columns.type(entry) != type
            || columns.scale(entry) != scale
            || columns.children(entry) != children
            || columns.nulls(entry) < 0
            || columns.nulls(entry) > 0 && columns.mask(entry) < 0) {
          return false;
        }
        rows += columns.rows(entry);
        nulls += columns.nulls(entry);
      }
    }
    if (rows >= Integer.MAX_VALUE) {
      return false;
    }
    final long mask = nulls == 0 ? -1 : mask(at, (int) rows);
    return switch (type) {
      case PackedColumns.STRING -> strings(at, scale, (int) rows, (int) nulls, mask, children);
      case PackedColumns.LIST -> lists(at, scale, (int) rows, (int) nulls, mask, children);
      case PackedColumns.STRUCT -> {
        put(type, scale, (int) rows, (int) nulls, -1, mask, children);
        yield children(at, 1, children);
      }
      default -> values(at, type, scale, (int) rows, (int) nulls, mask, children);
    };
  }

  private long room(final long wanted) {
    final long at = bytes;
    bytes = (bytes + wanted + ALIGNMENT - 1) & -ALIGNMENT;
    return at;
  }

  private long mask(final int[] at, final int rows) {
    final List<BitRun> runs = new ArrayList<>();
    for (int table = 0; table < at.length; table++) {
      if (hasRows(at, table)) {
        final int entry = at[table];
        final boolean valid = tables[table].nulls(entry) == 0;
        runs.add(
            new BitRun(table, valid ? -1 : tables[table].mask(entry), tables[table].rows(entry)));
      }
    }
    final long destination = room((rows + 31L) / 32 * 4);
    bits.add(new BitColumn(destination, runs));
    return destination;
  }

  private boolean values(
      final int[] at,
      final int type,
      final int scale,
      final int rows,
      final int nulls,
      final long mask,
      final int children) {
    final int width = PackedColumns.width(type);
    if (width == 0 || children != 0) {
      return false;
    }
    final long destination = room((long) rows * width);
    long done = 0;
    for (int table = 0; table < at.length; table++) {
      if (hasRows(at, table)) {
        final long source = tables[table].data(at[table]);
        final long length = (long) tables[table].rows(at[table]) * width;
        if (source < 0) {
          return false;
        }
        copies.add(new Piece(table, source, destination + done, length, 0));
        done += length;
      }
    }
    put(type, scale, rows, nulls, destination, mask, 0);
    return true;
  }

  private boolean strings(
      final int[] at,
      final int scale,
      final int rows,
      final int nulls,
      final long mask,
      final int children) {
    long chars = 0;
    for (int table = 0; table < at.length; table++) {
      if (hasRows(at, table)) {
        final int index = tables[table].boundIndex(at[table]);
        if (index < 0 || bounds[table][2 * index] > bounds[table][2 * index + 1]) {
          return false;
        }
        chars += bounds[table][2 * index + 1] - bounds[table][2 * index];
      }
    }
    if (chars > Integer.MAX_VALUE) {
      return false;
    }
    final long data = chars == 0 ? -1 : room(chars);
    final long offsetsAt = room(4L * (rows + 1L));
    long done = 0;
    long before = 0;
    for (int table = 0; table < at.length; table++) {
      if (hasRows(at, table)) {
        final int index = tables[table].boundIndex(at[table]);
        final int begin = bounds[table][2 * index];
        final int length = bounds[table][2 * index + 1] - begin;
        if (length > 0) {
          if (tables[table].data(at[table]) < 0) {
            return false;
          }
          copies.add(
              new Piece(table, tables[table].data(at[table]) + begin, data + before, length, 0));
        }
        done = addOffsets(at, table, offsetsAt, done, rows, (int) (before - begin));
        before += length;
      }
    }
    put(PackedColumns.STRING, scale, rows, nulls, data, mask, children);
    put(PackedColumns.INT32, 0, rows + 1, 0, offsetsAt, -1, 0);
    return true;
  }

  /** Adds a table's offsets, the last table's with the one behind its last row. */
  private long addOffsets(
      final int[] at,
      final int table,
      final long offsetsAt,
      final long done,
      final int rows,
      final int delta) {
    final int here = tables[table].rows(at[table]);
    final long source = tables[table].data(at[table] + 1);
    final int count = done + here == rows ? here + 1 : here;
    offsets.add(new Piece(table, source, offsetsAt + 4 * done, count, delta));
    return done + here;
  }

  private boolean lists(
      final int[] at,
      final int scale,
      final int rows,
      final int nulls,
      final long mask,
      final int children) {
    final long offsetsAt = room(4L * (rows + 1L));
    final int[] items = new int[at.length];
    Arrays.fill(items, -1);
    long done = 0;
    long before = 0;
    for (int table = 0; table < at.length; table++) {
      if (hasRows(at, table)) {
        final PackedColumns columns = tables[table];
        final int index = columns.boundIndex(at[table]);
        if (index < 0) {
          return false;
        }
        items[table] = columns.end(at[table] + 1);
        final int count = columns.rows(items[table]);
        if (bounds[table][2 * index] != 0 || bounds[table][2 * index + 1] != count) {
          return false;
        }
        if (before > Integer.MAX_VALUE - count) {
          return false;
        }
        done = addOffsets(at, table, offsetsAt, done, rows, (int) before);
        before += count;
      }
    }
    put(PackedColumns.LIST, scale, rows, nulls, -1, mask, children);
    put(PackedColumns.INT32, 0, rows + 1, 0, offsetsAt, -1, 0);
    return column(items);
  }

  /** Columns that follow their parent's entry. */
  private boolean children(final int[] at, final int skip, final int count) {
    final int[] child = new int[at.length];
    for (int table = 0; table < at.length; table++) {
      child[table] = hasRows(at, table) ? at[table] + skip : -1;
    }
    for (int i = 0; i < count; i++) {
      if (!column(child)) {
        return false;
      }
      for (int table = 0; table < at.length; table++) {
        child[table] = child[table] < 0 ? -1 : tables[table].end(child[table]);
      }
    }
    return true;
  }

  /** Bytes of the whole. */
  public long bytes() {
    return Math.max(ALIGNMENT, bytes);
  }

  /** cudf's metadata of the whole. */
  public ByteBuffer metadata() {
    return metadata;
  }

  /**
   * Adds what has to be done.
   *
   * @param sources where each table's bytes lie
   * @param to where the whole goes
   */
  public void fill(
      final long[] sources, final long to, final CopyBatch copy, final SpliceBatch splice) {
    for (final Piece piece : copies) {
      copy.add(sources[piece.table] + piece.source, to + piece.destination, piece.count);
    }
    for (final Piece piece : offsets) {
      splice.addOffsets(
          sources[piece.table] + piece.source,
          to + piece.destination,
          (int) piece.count,
          piece.delta);
    }
    for (final BitColumn column : bits) {
      splice.beginBits(to + column.destination);
      for (final BitRun run : column.runs) {
        splice.addBits(run.source < 0 ? 0 : sources[run.table] + run.source, run.count);
      }
    }
  }
}
