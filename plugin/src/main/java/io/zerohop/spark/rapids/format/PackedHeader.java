package io.zerohop.spark.rapids.format;

import java.nio.ByteBuffer;

/**
 * The part of cudf's metadata of a packed table before the first column. Releases differ in it, and
 * its length tells which one it is, since entries of columns have all the same.
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
  static PackedHeader of(final int bytes) {
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
