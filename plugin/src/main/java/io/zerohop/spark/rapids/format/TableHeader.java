package io.zerohop.spark.rapids.format;

import java.io.EOFException;
import java.io.IOException;
import java.io.InputStream;
import java.nio.BufferUnderflowException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.ArrayList;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * The host's description of the tables of a block in one batch of a map output. It comes before
 * their bytes, both in memory and when the block is sent as a stream. Little-endian:
 *
 * <pre>
 *  0          4          8                        16
 *  | magic    | tables   | bytes of the header    |
 *  for each table
 *  | rows     | metadata bytes | bytes of the table (64)         |
 *  | bounds   | zero           | cudf's metadata ...             |
 *  | bounds: the first and the last offset of each column that has some
 * </pre>
 *
 * <p>The tables' bytes follow one another without gaps. A batch without columns is a table of
 * neither metadata nor bytes.
 */
public final class TableHeader {
  private static final int MAGIC = 0x31544a5a;
  private static final int FIXED_BYTES = 16;
  private static final int TABLE_BYTES = 24;

  /** Of cudf's metadata, where columns are an entry of this size each, or of a few. */
  private static final int COLUMN_BYTES = 40;

  private static final int MAX_BYTES = 1 << 30;

  /** Of all tables of a header. */
  private static final long MAX_TABLE_BYTES = 1L << 44;

  /**
   * One table.
   *
   * @param metadata as cudf made it; empty if it has no columns
   * @param bytes of its packed columns
   * @param bounds first and last offset of each of {@link PackedColumns#bounded}, in this order;
   *     empty if they are not known
   */
  public record PackedTable(int rows, byte[] metadata, long bytes, int[] bounds) {}

  private TableHeader() {}

  /** About the bytes of a header of one table with so many columns that are not nested. */
  public static long typicalBytes(final int columns) {
    return FIXED_BYTES + TABLE_BYTES + (columns + 1L) * COLUMN_BYTES;
  }

  /** Bytes of the header of these tables. */
  public static int bytes(final List<PackedTable> tables) {
    int bytes = FIXED_BYTES;
    for (final PackedTable table : tables) {
      bytes =
          Math.addExact(bytes, TABLE_BYTES + table.metadata().length + 4 * table.bounds().length);
    }
    return bytes;
  }

  /** Writes the header at the buffer's position. */
  public static void write(final List<PackedTable> tables, final ByteBuffer to) {
    to.order(ByteOrder.LITTLE_ENDIAN);
    to.putInt(MAGIC).putInt(tables.size()).putLong(bytes(tables));
    for (final PackedTable table : tables) {
      to.putInt(table.rows()).putInt(table.metadata().length).putLong(table.bytes());
      to.putInt(table.bounds().length).putInt(0).put(table.metadata());
      for (final int bound : table.bounds()) {
        to.putInt(bound);
      }
    }
  }

  /**
   * Reads a header that ends where the buffer does.
   *
   * @throws IOException if it is damaged
   */
  public static List<PackedTable> read(final ByteBuffer from) throws IOException {
    from.order(ByteOrder.LITTLE_ENDIAN);
    try {
      final int length = from.remaining();
      final boolean ours = from.getInt() == MAGIC;
      final int count = from.getInt();
      if (!ours || from.getLong() != length || count < 1 || count > length / TABLE_BYTES) {
        throw damaged();
      }
      final List<PackedTable> tables = new ArrayList<>(count);
      long payload = 0;
      for (int i = 0; i < count; i++) {
        final int rows = from.getInt();
        final int metadataBytes = from.getInt();
        final long bytes = from.getLong();
        final int boundCount = from.getInt();
        from.getInt();
        final boolean fits =
            metadataBytes >= 0
                && boundCount >= 0
                && metadataBytes + 4L * boundCount <= from.remaining();
        final boolean sized = bytes >= 0 && bytes < MAX_TABLE_BYTES;
        if (rows < 0 || !sized || !fits || metadataBytes == 0 && bytes > 0) {
          throw damaged();
        }
        payload += bytes;
        if (payload >= MAX_TABLE_BYTES) {
          throw damaged();
        }
        final byte[] metadata = new byte[metadataBytes];
        from.get(metadata);
        final int[] bounds = new int[boundCount];
        for (int bound = 0; bound < boundCount; bound++) {
          bounds[bound] = from.getInt();
        }
        tables.add(new PackedTable(rows, metadata, bytes, bounds));
      }
      if (from.hasRemaining()) {
        throw damaged();
      }
      return tables;
    } catch (final BufferUnderflowException e) {
      throw damaged();
    }
  }

  /**
   * Reads the next header of a stream, and leaves it at the tables' bytes.
   *
   * @return null at the end of the stream
   * @throws IOException if it is damaged or cut off
   */
  public static @Nullable List<PackedTable> read(final InputStream in) throws IOException {
    final byte[] fixed = in.readNBytes(FIXED_BYTES);
    if (fixed.length == 0) {
      return null;
    }
    if (fixed.length < FIXED_BYTES) {
      throw new EOFException("a table header is truncated");
    }
    final long bytes = ByteBuffer.wrap(fixed).order(ByteOrder.LITTLE_ENDIAN).getLong(8);
    if (bytes < FIXED_BYTES || bytes > MAX_BYTES) {
      throw damaged();
    }
    // In steps: nothing is taken on the word of a length.
    final byte[] rest = in.readNBytes((int) bytes - FIXED_BYTES);
    if (rest.length < bytes - FIXED_BYTES) {
      throw new EOFException("a table header is truncated");
    }
    return read(ByteBuffer.allocate((int) bytes).put(fixed).put(rest).flip());
  }

  /** Bytes of all tables together. */
  public static long payload(final List<PackedTable> tables) {
    long bytes = 0;
    for (final PackedTable table : tables) {
      bytes = Math.addExact(bytes, table.bytes());
    }
    return bytes;
  }

  private static IOException damaged() {
    return new IOException("a table header is damaged");
  }
}
