package ai.rapids.cudf;

import java.nio.ByteBuffer;

/** What is before the first column in metadata of packed tables, by the release that is played. */
public enum FakeMetadata {
  /** Up to 26.06: an entry of no type, whose rows are the columns. */
  STUB(40) {
    @Override
    void put(final ByteBuffer to, final int columns, final int rows) {
      to.putInt(0).putInt(0).putInt(columns).putInt(0).putLong(-1).putLong(-1).putLong(0);
    }

    @Override
    int columns(final ByteBuffer from) {
      return from.getInt(8);
    }
  },

  /** From 26.08 on: version, columns, rows. */
  COUNTS(16) {
    @Override
    void put(final ByteBuffer to, final int columns, final int rows) {
      to.putInt(1).putInt(columns).putInt(rows).putInt(0);
    }

    @Override
    int columns(final ByteBuffer from) {
      return from.getInt(4);
    }
  },

  /** One that looks like {@link #COUNTS}, but counts something else where the version was. */
  SHIFTED(16) {
    @Override
    void put(final ByteBuffer to, final int columns, final int rows) {
      to.putInt(columns).putInt(rows).putInt(1).putInt(0);
    }

    @Override
    int columns(final ByteBuffer from) {
      return from.getInt(0);
    }
  };

  private static volatile FakeMetadata played = COUNTS;
  private final int bytes;

  FakeMetadata(final int bytes) {
    this.bytes = bytes;
  }

  /** Has cudf pack tables so from now on, and take them for packed so. */
  public static void play(final FakeMetadata release) {
    played = release;
  }

  static FakeMetadata played() {
    return played;
  }

  int bytes() {
    return bytes;
  }

  abstract void put(ByteBuffer to, int columns, int rows);

  /** Columns at the top, of metadata that begins where the buffer does. */
  abstract int columns(ByteBuffer from);
}
