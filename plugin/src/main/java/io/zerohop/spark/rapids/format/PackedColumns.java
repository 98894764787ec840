package io.zerohop.spark.rapids.format;

import io.zerohop.spark.log.SparkCode;
import io.zerohop.spark.rapids.format.TableHeader.PackedTable;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.List;
import java.util.concurrent.atomic.AtomicBoolean;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The places of a packed table's columns, from cudf's metadata (pack.cpp of cudf 24.12 to 26.08),
 * in the machine's byte order. It is a {@linkplain PackedHeader header}, then an entry for each
 * column in depth-first order.
 *
 * <pre>
 *  0         4         8        12      16               24               32         36    40
 *  | type    | scale   | rows   | nulls | offset of data | offset of mask | children | pad |
 * </pre>
 *
 * <p>An offset of -1 means that there is none. Immutable.
 */
public final class PackedColumns {
  private static final Logger LOG = LoggerFactory.getLogger(PackedColumns.class);
  private static final AtomicBoolean SAID_UNKNOWN = new AtomicBoolean();
  private static final int SHOWN_BYTES = 64;
  static final int ENTRY_BYTES = 40;
  private static final int MAX_DEPTH = 200;

  /** cudf reads metadata by recursion, so a table nested without end would end the process. */
  private static final int MAX_CHECKED_DEPTH = 500;

  static final int INT32 = 3;
  public static final int STRING = 23;
  public static final int LIST = 24;
  public static final int STRUCT = 28;

  /** Bytes of a value by type; 0 where a column is more than values of a fixed width. */
  private static final int[] WIDTHS = {
    0, 1, 2, 4, 8, 1, 2, 4, 8, 4, 8, 1, 4, 8, 8, 8, 8, 4, 8, 8, 8, 8, 0, 0, 0, 4, 8, 16, 0
  };

  /** Whether cudf was found to lay tables out in another way than this class knows. */
  private static volatile boolean distrusted;

  private final PackedHeader header;
  private final int version;
  private final int columns;
  private final ByteBuffer entries;
  private final int[] ends;
  private final int[] boundIndexes;
  private final List<Integer> bounded = new ArrayList<>();

  private PackedColumns(final PackedHeader header, final ByteBuffer all, final int count) {
    this.header = header;
    this.version = header.version(all);
    this.columns = header.columns(all);
    this.entries = all.slice(header.length(), count * ENTRY_BYTES).order(ByteOrder.nativeOrder());
    this.ends = new int[count];
    this.boundIndexes = new int[count];
  }

  /**
   * Reads cudf's metadata; null if the table has no columns, for which there is none, and null, and
   * said once, if it is not what this class knows.
   */
  public static @Nullable PackedColumns parse(final byte[] metadata) {
    if (distrusted) {
      return null;
    }
    final PackedColumns columns = read(metadata);
    if (columns == null && metadata.length > 0 && !SAID_UNKNOWN.getAndSet(true)) {
      // Rows are right either way, but someone who wonders about the speed should find this.
      SparkCode.TABLES_NOT_PARSED
          .says(
              "this version of cudf describes packed tables in an unknown way, so small tables are"
                  + " concatenated, which is slower")
          .at(
              "metadata of "
                  + metadata.length
                  + " bytes: "
                  + HexFormat.of().formatHex(metadata, 0, Math.min(SHOWN_BYTES, metadata.length)))
          .remedy("see docs/compatibility.md")
          .warn(LOG);
    }
    return columns;
  }

  /** The same, also where it is not {@linkplain #trust trusted}; null, too, if it is empty. */
  public static @Nullable PackedColumns read(final byte[] metadata) {
    return read(metadata, MAX_DEPTH);
  }

  private static @Nullable PackedColumns read(final byte[] metadata, final int levels) {
    final PackedHeader header = PackedHeader.of(metadata.length);
    final ByteBuffer all = ByteBuffer.wrap(metadata).order(ByteOrder.nativeOrder());
    if (header == null || !header.isValid(all)) {
      return null;
    }
    final int count = (metadata.length - header.length()) / ENTRY_BYTES;
    final PackedColumns columns = new PackedColumns(header, all, count);
    final int rows = header.rows(all, columns.rows(0));
    int next = 0;
    for (int column = 0; column < columns.columns && next >= 0; column++) {
      if (next == count || columns.rows(next) != rows) {
        return null;
      }
      next = columns.visit(next, levels);
    }
    return next == count ? columns : null;
  }

  /**
   * Whether cudf must not read a table, since what it says of itself does not hold together. Not
   * known, and false, where metadata is not {@linkplain #trust trusted}.
   */
  public static boolean isDamaged(final PackedTable table) {
    if (distrusted || table.metadata().length == 0) {
      return false;
    }
    final PackedColumns columns = read(table.metadata(), MAX_CHECKED_DEPTH);
    return columns == null || !columns.fits(table.bytes(), table.bounds());
  }

  /**
   * Whether metadata is read in this process from now on. If not, it is as if all of it were
   * unknown: tables are gathered as they are and concatenated by cudf.
   */
  public static void trust(final boolean isKnown) {
    distrusted = !isKnown;
  }

  /** Metadata of the same table, as cudf would write it. */
  public byte[] write() {
    final ByteBuffer to =
        ByteBuffer.allocate(header.bytes(entries())).order(ByteOrder.nativeOrder());
    header.put(to, version, columns, rows(0));
    for (int entry = 0; entry < entries(); entry++) {
      put(
          to,
          type(entry),
          scale(entry),
          rows(entry),
          nulls(entry),
          data(entry),
          mask(entry),
          children(entry));
    }
    return to.array();
  }

  /**
   * Notes an entry and all below it; the index behind them, or -1 if they do not fit.
   *
   * @param levels that may be below it
   */
  private int visit(final int entry, final int levels) {
    if (entry >= ends.length || rows(entry) < 0 || children(entry) < 0 || levels < 0) {
      return -1;
    }
    boundIndexes[entry] = bounded.size();
    if (hasOffsets(entry)) {
      bounded.add(entry);
    }
    int next = entry + 1;
    for (int child = 0; child < children(entry) && next >= 0; child++) {
      next = visit(next, levels - 1);
    }
    ends[entry] = next;
    return next;
  }

  /** Whether an entry has rows, and in its first child 32-bit offsets for them. */
  private boolean hasOffsets(final int entry) {
    final boolean kind =
        type(entry) == STRING && children(entry) == 1
            || type(entry) == LIST && children(entry) == 2;
    final int offsets = entry + 1;
    return kind
        && rows(entry) > 0
        && offsets < ends.length
        && type(offsets) == INT32
        && rows(offsets) == rows(entry) + 1
        && data(offsets) >= 0;
  }

  /**
   * Whether everything that the entries name lies within a table, and each has the rows that its
   * parent reads of it.
   *
   * @param bytes of the table
   * @param bounds of {@link #bounded}; empty if they are not known
   */
  public boolean fits(final long bytes, final int[] bounds) {
    if (bounds.length != 0 && bounds.length != 2 * bounded.size()) {
      return false;
    }
    for (int entry = 0; entry < ends.length; entry++) {
      final long rows = rows(entry);
      final int type = type(entry);
      final int bound = bounds.length > 0 ? boundIndex(entry) : -1;
      final long length =
          type == STRING ? bound < 0 ? 0 : bounds[2 * bound + 1] : rows * width(type);
      if (!within(data(entry), length, bytes)
          || !within(mask(entry), (rows + 31) / 32 * 4, bytes)) {
        return false;
      }
      if (bound >= 0 && (bounds[2 * bound] < 0 || bounds[2 * bound] > bounds[2 * bound + 1])) {
        return false;
      }
      if (!childrenFit(entry, bound < 0 ? 0 : bounds[2 * bound + 1])) {
        return false;
      }
    }
    return true;
  }

  /**
   * Whether the columns right below an entry are as long as it needs. Packed columns hold what the
   * entry's own rows refer to: nothing has an offset, and the fields of a struct have its rows.
   *
   * @param items that a list refers to, as far as that is known
   */
  private boolean childrenFit(final int entry, final int items) {
    final int rows = rows(entry);
    final int type = type(entry);
    if (type == STRUCT) {
      int field = entry + 1;
      for (int i = 0; i < children(entry); i++, field = end(field)) {
        if (rows(field) != rows) {
          return false;
        }
      }
      return true;
    }
    if (type == STRING) {
      return rows == 0 || children(entry) == 0 || rows(entry + 1) == rows + 1;
    }
    return type != LIST
        || rows == 0
        || children(entry) == 2 && rows(entry + 1) == rows + 1 && rows(end(entry + 1)) >= items;
  }

  /** Whether a range lies within so many bytes; an offset of -1 is none. */
  private static boolean within(final long offset, final long length, final long bytes) {
    return offset == -1 || offset >= 0 && length >= 0 && offset <= bytes - length;
  }

  /** Entries with offsets, in order. */
  public List<Integer> bounded() {
    return bounded;
  }

  /** Which of {@link #bounded} an entry is; -1 if it is none. */
  public int boundIndex(final int entry) {
    final int index = boundIndexes[entry];
    return index < bounded.size() && bounded.get(index) == entry ? index : -1;
  }

  /** Columns at the top. */
  public int columns() {
    return columns;
  }

  /** How many entries there are. */
  public int entries() {
    return ends.length;
  }

  /** What is before its entries. */
  PackedHeader header() {
    return header;
  }

  /** cudf's version of this layout. */
  int version() {
    return version;
  }

  public int type(final int entry) {
    return entries.getInt(entry * ENTRY_BYTES);
  }

  int scale(final int entry) {
    return entries.getInt(entry * ENTRY_BYTES + 4);
  }

  public int rows(final int entry) {
    return entries.getInt(entry * ENTRY_BYTES + 8);
  }

  /** Nulls of a column; negative if nobody has counted them. */
  public int nulls(final int entry) {
    return entries.getInt(entry * ENTRY_BYTES + 12);
  }

  public long data(final int entry) {
    return entries.getLong(entry * ENTRY_BYTES + 16);
  }

  public long mask(final int entry) {
    return entries.getLong(entry * ENTRY_BYTES + 24);
  }

  public int children(final int entry) {
    return entries.getInt(entry * ENTRY_BYTES + 32);
  }

  /** Index behind an entry and all below it. */
  public int end(final int entry) {
    return ends[entry];
  }

  /** Bytes of a value of a type; 0 if it has no fixed width or is not known. */
  public static int width(final int type) {
    return type < 0 || type >= WIDTHS.length ? 0 : WIDTHS[type];
  }

  /** Writes an entry at the buffer's position. */
  static void put(
      final ByteBuffer to,
      final int type,
      final int scale,
      final int rows,
      final int nulls,
      final long data,
      final long mask,
      final int children) {
    to.putInt(type).putInt(scale).putInt(rows).putInt(nulls).putLong(data).putLong(mask);
    to.putInt(children).putInt(0);
  }

  /**
   * The part of cudf's metadata of a packed table before the first column. Releases differ in it,
   * and its length tells which one it is, since entries of columns have all the same.
   */
  enum PackedHeader {
    /**
     * Up to cudf 26.06: an entry like those of columns, of type 0.
     *
     * <pre>
     *  0          4         8         12         16            24            32         36    40
     *  | type = 0 | scale   | columns | nulls    | data = -1   | mask = -1   | children | pad |
     * </pre>
     */
    STUB(40) {
      @Override
      boolean isValid(final ByteBuffer from) {
        return from.getInt(0) == 0
            && from.getLong(16) == -1
            && from.getLong(24) == -1
            && from.getInt(32) == 0;
      }

      @Override
      int version(final ByteBuffer from) {
        return 0;
      }

      @Override
      int columns(final ByteBuffer from) {
        return from.getInt(8);
      }

      @Override
      int rows(final ByteBuffer from, final int ofFirstColumn) {
        return ofFirstColumn;
      }

      @Override
      void put(final ByteBuffer to, final int version, final int columns, final int rows) {
        PackedColumns.put(to, 0, 0, columns, 0, -1, -1, 0);
      }
    },

    /**
     * From cudf 26.08 on. Columns are those at the top.
     *
     * <pre>
     *  0         4         8      12      16
     *  | version | columns | rows   | pad   |
     * </pre>
     */
    COUNTS(16) {
      @Override
      boolean isValid(final ByteBuffer from) {
        return true;
      }

      @Override
      int version(final ByteBuffer from) {
        return from.getInt(0);
      }

      @Override
      int columns(final ByteBuffer from) {
        return from.getInt(4);
      }

      @Override
      int rows(final ByteBuffer from, final int ofFirstColumn) {
        return from.getInt(8);
      }

      @Override
      void put(final ByteBuffer to, final int version, final int columns, final int rows) {
        to.putInt(version).putInt(columns).putInt(rows).putInt(0);
      }
    };

    private final int length;

    PackedHeader(final int length) {
      this.length = length;
    }

    /** Of metadata of so many bytes; null if none fits. */
    static @Nullable PackedHeader of(final int bytes) {
      for (final PackedHeader header : values()) {
        final int entries = bytes - header.length;
        if (entries > 0 && entries % PackedColumns.ENTRY_BYTES == 0) {
          return header;
        }
      }
      return null;
    }

    /** Its bytes. */
    int length() {
      return length;
    }

    /** Bytes of metadata with so many columns, those in others counted, too. */
    int bytes(final int entries) {
      return length + entries * PackedColumns.ENTRY_BYTES;
    }

    /** Whether metadata begins as it has to. */
    abstract boolean isValid(ByteBuffer from);

    /** cudf's version of the layout; 0 where it says none. */
    abstract int version(ByteBuffer from);

    /** Columns at the top. */
    abstract int columns(ByteBuffer from);

    /** Rows of the table; those of its first column where the header says none. */
    abstract int rows(ByteBuffer from, int ofFirstColumn);

    /** Writes it at the buffer's position. */
    abstract void put(ByteBuffer to, int version, int columns, int rows);
  }
}
