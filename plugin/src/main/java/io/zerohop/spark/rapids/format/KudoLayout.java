package io.zerohop.spark.rapids.format;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import org.apache.spark.sql.types.ArrayType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.MapType;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;

/**
 * The places of a batch's blocks in the buffer that RAPIDS' serializer filled. A partition without
 * rows has no block, whatever the serializer has for it. Immutable.
 *
 * @param firstRows first row of each partition, and how many rows there are
 * @param starts where each partition begins, and where the last one ends
 */
public record KudoLayout(int[] firstRows, int[] starts) {

  /** How many partitions there are. */
  public int partitions() {
    return starts.length - 1;
  }

  /** Rows of all of them. */
  public int rows() {
    return firstRows[partitions()];
  }

  /** Rows of a partition. */
  public int rows(final int partition) {
    return firstRows[partition + 1] - firstRows[partition];
  }

  /** Bytes of a partition's block; 0 if it has none. */
  public int bytes(final int partition) {
    return rows(partition) == 0 ? 0 : starts[partition + 1] - starts[partition];
  }

  /** Bytes of the blocks of some partitions, one after the other. */
  public long bytes(final int first, final int end) {
    long bytes = 0;
    for (int partition = first; partition < end; partition++) {
      bytes += bytes(partition);
    }
    return bytes;
  }

  /**
   * Divides the partitions into ranges, each with up to so many bytes of blocks, or with one block
   * if that has more; none without any.
   */
  public List<int[]> ranges(final long most) {
    final List<int[]> ranges = new ArrayList<>();
    int first = 0;
    long bytes = 0;
    for (int partition = 0; partition < partitions(); partition++) {
      if (bytes > 0 && bytes + bytes(partition) > most) {
        ranges.add(new int[] {first, partition});
        first = partition;
        bytes = 0;
      }
      bytes += bytes(partition);
    }
    if (bytes > 0) {
      ranges.add(new int[] {first, partitions()});
    }
    return ranges;
  }

  /** Receives blocks that lie without gaps, with their offset, and their place without gaps. */
  @FunctionalInterface
  public interface Run {
    void run(int offset, long place, long bytes);
  }

  /**
   * Lays the blocks of some partitions out without gaps.
   *
   * @param first of the partitions
   * @param end behind the last one
   * @param address where the first block is to be
   * @return where each partition of all is to begin, and where the last one ends
   */
  public long[] layOut(final int first, final int end, final long address, final Run consumer) {
    final long[] places = new long[partitions() + 1];
    Arrays.fill(places, 0, first + 1, address);
    int from = first;
    for (int partition = first; partition < end; partition++) {
      places[partition + 1] = places[partition] + bytes(partition);
      final boolean ends = partition + 1 == end || bytes(partition + 1) == 0;
      if (ends || bytes(partition) == 0) {
        if (places[partition + 1] > places[from]) {
          consumer.run(starts[from], places[from], places[partition + 1] - places[from]);
        }
        from = partition + 1;
      }
    }
    Arrays.fill(places, end, places.length, places[end]);
    return places;
  }

  /**
   * The header of a block of RAPIDS' serializer, which identifies blocks that come over the host
   * and shows that they are complete. Big-endian numbers of 32 bits, by spark-rapids-jni's {@code
   * KudoTableHeader}:
   *
   * <pre>
   *  0       4      8      12         16        20      24        28
   *  | magic | row  | rows | validity | offsets | bytes | columns | a bit for each column ...
   * </pre>
   *
   * <p>"bytes" are those behind the header: validity, offsets and data, padded. Columns count those
   * that are nested in others, too.
   */
  public static final class KudoBlock {
    /** Of a header, without the bits. */
    public static final int FIXED_BYTES = 28;

    /** "KUD0" in the order of its bytes. */
    private static final int MAGIC = 0x4b554430;

    private static final int ROWS = 8;
    private static final int VALIDITY = 12;
    private static final int OFFSETS = 16;
    private static final int BYTES = 20;
    private static final int COLUMNS = 24;
    private static final int MAX_COLUMNS = 1 << 20;

    private KudoBlock() {}

    /** Whether bytes that begin so, as a big-endian number, are a block of this kind. */
    public static boolean begins(final int first) {
      return first == MAGIC;
    }

    /**
     * Bytes of a block, its header among them, by the header at the beginning of a buffer.
     *
     * @throws IOException if it is damaged or cut off
     */
    public static long length(final ByteBuffer from) throws IOException {
      if (from.remaining() < FIXED_BYTES) {
        throw damaged();
      }
      final int at = from.position();
      final int rows = from.getInt(at + ROWS);
      final long validity = from.getInt(at + VALIDITY);
      final long offsets = from.getInt(at + OFFSETS);
      final long bytes = from.getInt(at + BYTES);
      final int columns = from.getInt(at + COLUMNS);
      final boolean sized =
          validity >= 0 && offsets >= 0 && bytes >= 0 && validity + offsets <= bytes;
      if (!begins(from.getInt(at)) || rows < 1 || columns < 1 || columns > MAX_COLUMNS || !sized) {
        throw damaged();
      }
      return FIXED_BYTES + (columns + 7) / 8 + bytes;
    }

    private static IOException damaged() {
      return new IOException("the header of a Kudo block is damaged");
    }

    /**
     * Returns what RAPIDS takes in GPU memory for each block while it puts blocks together, beside
     * their bytes: some 250 bytes a column, by its source.
     */
    public static long readerBytes(final DataType... types) {
      return Long.BYTES + 256L * columns(types);
    }

    /** With those that are nested in others. */
    private static int columns(final DataType... of) {
      int columns = of.length;
      for (final DataType type : of) {
        if (type instanceof ArrayType array) {
          columns += columns(array.elementType());
        } else if (type instanceof MapType map) {
          columns += 1 + columns(map.keyType(), map.valueType());
        } else if (type instanceof StructType struct) {
          for (final StructField field : struct.fields()) {
            columns += columns(field.dataType());
          }
        }
      }
      return columns;
    }
  }
}
