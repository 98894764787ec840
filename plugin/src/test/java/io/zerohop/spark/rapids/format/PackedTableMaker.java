package io.zerohop.spark.rapids.format;

import io.zerohop.spark.rapids.format.PackedColumns.PackedHeader;
import io.zerohop.spark.rapids.format.TableHeader.PackedTable;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;

/**
 * Packs columns of random values the way cudf does, and reads packed columns back as values. A
 * value is null, a Long, a String, or a List of values (of a list's items or a struct's fields).
 */
public final class PackedTableMaker {
  public static final int INT16 = 2;
  public static final int INT64 = 4;
  public static final int BOOL = 11;
  private static final int VERSION = 1;

  /** A kind of column; the types of a list's items or a struct's fields are its children. */
  public record Kind(int type, boolean nullable, List<Kind> children) {
    public static Kind of(final int type, final boolean nullable, final Kind... children) {
      return new Kind(type, nullable, List.of(children));
    }
  }

  private final ByteBuffer bytes;
  private final List<int[]> entries = new ArrayList<>();
  private final List<long[]> places = new ArrayList<>();
  private final List<Integer> bounds = new ArrayList<>();

  private PackedTableMaker(final ByteBuffer bytes) {
    this.bytes = bytes.order(ByteOrder.nativeOrder());
  }

  public static Object value(final Random random, final Kind kind) {
    if (kind.nullable && random.nextInt(4) == 0) {
      return null;
    }
    return switch (kind.type) {
      case PackedColumns.STRING ->
          "s".repeat(random.nextInt(5)) + (char) ('a' + random.nextInt(26));
      case PackedColumns.LIST -> {
        final List<Object> items = new ArrayList<>();
        for (int i = random.nextInt(4); i > 0; i--) {
          items.add(value(random, kind.children.get(0)));
        }
        yield items;
      }
      case PackedColumns.STRUCT -> {
        final List<Object> fields = new ArrayList<>();
        kind.children.forEach(child -> fields.add(value(random, child)));
        yield fields;
      }
      case INT16 -> (long) (short) random.nextInt();
      case BOOL -> (long) random.nextInt(2);
      default -> random.nextLong();
    };
  }

  /** Packs columns of equally many values into the buffer, which begins at a multiple of 64. */
  public static PackedTable pack(
      final List<Kind> kinds, final List<List<Object>> columns, final ByteBuffer to) {
    return pack(PackedHeader.COUNTS, kinds, columns, to);
  }

  /** The same with the metadata of another release of cudf. */
  static PackedTable pack(
      final PackedHeader header,
      final List<Kind> kinds,
      final List<List<Object>> columns,
      final ByteBuffer to) {
    final PackedTableMaker maker = new PackedTableMaker(to);
    final int rows = columns.get(0).size();
    for (int i = 0; i < kinds.size(); i++) {
      maker.column(kinds.get(i), columns.get(i));
    }
    final ByteBuffer metadata =
        ByteBuffer.allocate(header.bytes(maker.entries.size())).order(ByteOrder.nativeOrder());
    header.put(metadata, VERSION, columns.size(), rows);
    for (int i = 0; i < maker.entries.size(); i++) {
      final int[] e = maker.entries.get(i);
      PackedColumns.put(
          metadata, e[0], 0, e[1], e[2], maker.places.get(i)[0], maker.places.get(i)[1], e[3]);
    }
    return new PackedTable(
        rows,
        metadata.array(),
        to.position(),
        maker.bounds.stream().mapToInt(Integer::intValue).toArray());
  }

  /** Where an entry begins in the metadata of {@link #pack}. */
  public static int entryOffset(final int entry) {
    return PackedHeader.COUNTS.bytes(entry);
  }

  private int entry(
      final int type,
      final int rows,
      final int nulls,
      final long data,
      final long mask,
      final int children) {
    entries.add(new int[] {type, rows, nulls, children});
    places.add(new long[] {data, mask});
    return entries.size() - 1;
  }

  private int align() {
    bytes.position((bytes.position() + 63) / 64 * 64);
    return bytes.position();
  }

  private void column(final Kind kind, final List<Object> values) {
    int nulls = 0;
    long mask = -1;
    if (kind.nullable && !values.isEmpty()) {
      mask = align();
      for (int row = 0; row < values.size(); row += 32) {
        int word = 0;
        for (int i = row; i < Math.min(values.size(), row + 32); i++) {
          word |= values.get(i) == null ? 0 : 1 << i;
          nulls += values.get(i) == null ? 1 : 0;
        }
        bytes.putInt(word);
      }
    }
    final int at = entry(kind.type, values.size(), nulls, -1, mask, kind.children.size());
    switch (kind.type) {
      case PackedColumns.STRING -> strings(at, values);
      case PackedColumns.LIST -> lists(kind, values);
      case PackedColumns.STRUCT -> {
        for (int field = 0; field < kind.children.size(); field++) {
          final List<Object> child = new ArrayList<>();
          for (final Object value : values) {
            child.add(
                value == null ? filler(kind.children.get(field)) : ((List<?>) value).get(field));
          }
          column(kind.children.get(field), child);
        }
      }
      default -> fixed(at, kind.type, values);
    }
  }

  /** What a field has where its struct is null. */
  private static Object filler(final Kind kind) {
    if (kind.nullable) {
      return null;
    }
    return switch (kind.type) {
      case PackedColumns.STRING -> "";
      case PackedColumns.LIST -> List.of();
      case PackedColumns.STRUCT -> kind.children.stream().map(PackedTableMaker::filler).toList();
      default -> 0L;
    };
  }

  private void fixed(final int at, final int type, final List<Object> values) {
    if (!values.isEmpty()) {
      places.get(at)[0] = align();
    }
    for (final Object value : values) {
      final long number = value == null ? 0xdeadL : (Long) value;
      switch (PackedColumns.width(type)) {
        case 1 -> bytes.put((byte) number);
        case 2 -> bytes.putShort((short) number);
        default -> bytes.putLong(number);
      }
    }
  }

  private void strings(final int at, final List<Object> values) {
    if (values.isEmpty()) {
      return;
    }
    entries.get(at)[3] = 1;
    final List<Integer> ends = new ArrayList<>(List.of(0));
    places.get(at)[0] = align();
    for (final Object value : values) {
      bytes.put(value == null ? new byte[0] : ((String) value).getBytes(StandardCharsets.UTF_8));
      ends.add(bytes.position() - (int) places.get(at)[0]);
    }
    offsets(ends);
  }

  private void lists(final Kind kind, final List<Object> values) {
    final List<Integer> ends = new ArrayList<>(List.of(0));
    final List<Object> items = new ArrayList<>();
    entries.get(entries.size() - 1)[3] = 2;
    for (final Object value : values) {
      items.addAll(value == null ? List.of() : (List<?>) value);
      ends.add(items.size());
    }
    if (values.isEmpty()) {
      entry(PackedColumns.INT32, 0, 0, -1, -1, 0);
    } else {
      offsets(ends);
    }
    column(kind.children.get(0), items);
  }

  private void offsets(final List<Integer> ends) {
    bounds.add(0);
    bounds.add(ends.get(ends.size() - 1));
    final int at = align();
    entry(PackedColumns.INT32, ends.size(), 0, at, -1, 0);
    ends.forEach(bytes::putInt);
  }

  /** Reads all values of the columns of a packed table. */
  static List<List<Object>> read(final PackedColumns columns, final ByteBuffer from) {
    from.order(ByteOrder.nativeOrder());
    final List<List<Object>> all = new ArrayList<>();
    int entry = 0;
    for (int i = 0; i < columns.columns(); i++) {
      all.add(values(columns, entry, from));
      entry = columns.end(entry);
    }
    return all;
  }

  private static List<Object> values(
      final PackedColumns columns, final int entry, final ByteBuffer from) {
    final List<List<Object>> children = new ArrayList<>();
    if (columns.type(entry) == PackedColumns.STRUCT) {
      int child = entry + 1;
      for (int i = 0; i < columns.children(entry); i++) {
        children.add(values(columns, child, from));
        child = columns.end(child);
      }
    } else if (columns.type(entry) == PackedColumns.LIST) {
      children.add(values(columns, columns.end(entry + 1), from));
    }
    final List<Object> values = new ArrayList<>();
    int nulls = 0;
    for (int row = 0; row < columns.rows(entry); row++) {
      final long mask = columns.mask(entry);
      final boolean isNull = mask >= 0 && (from.getInt((int) mask + row / 32 * 4) >>> row & 1) == 0;
      nulls += isNull ? 1 : 0;
      values.add(isNull ? null : value(columns, entry, row, children, from));
    }
    if (nulls != columns.nulls(entry)) {
      throw new AssertionError(nulls + " nulls where there should be " + columns.nulls(entry));
    }
    return values;
  }

  private static Object value(
      final PackedColumns columns,
      final int entry,
      final int row,
      final List<List<Object>> children,
      final ByteBuffer from) {
    final int type = columns.type(entry);
    if (type == PackedColumns.STRUCT) {
      final List<Object> fields = new ArrayList<>();
      children.forEach(child -> fields.add(child.get(row)));
      return fields;
    }
    if (type == PackedColumns.STRING || type == PackedColumns.LIST) {
      final int offsets = (int) columns.data(entry + 1) + 4 * row;
      final int begin = from.getInt(offsets);
      final int end = from.getInt(offsets + 4);
      if (type == PackedColumns.LIST) {
        return new ArrayList<>(children.get(0).subList(begin, end));
      }
      final byte[] text = new byte[end - begin];
      if (text.length > 0) {
        from.get((int) columns.data(entry) + begin, text);
      }
      return new String(text, StandardCharsets.UTF_8);
    }
    final int at = (int) columns.data(entry) + row * PackedColumns.width(type);
    return switch (PackedColumns.width(type)) {
      case 1 -> (long) from.get(at);
      case 2 -> (long) from.getShort(at);
      default -> from.getLong(at);
    };
  }
}
