package ai.rapids.cudf;

import ai.rapids.cudf.HostColumnVector.DataType;
import ai.rapids.cudf.HostColumnVector.StructData;
import java.io.ByteArrayOutputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;

/**
 * Writes Kudo blocks as spark-rapids-jni's {@code shuffle_split} lays them out: a header of
 * big-endian numbers and a bit for each column, then masks of nulls, offsets, and values, each of
 * these three column by column in depth-first order and padded to a multiple of 4 bytes. Masks
 * begin at the byte that has the first row's bit, and offsets are those of the whole table.
 */
public final class KudoWriter {
  private static final int MAGIC = 0x4b554430;
  private static final int HEADER_BYTES = 28;
  private static final int ALIGNMENT = 4;

  private final List<Part> columns = new ArrayList<>();
  private final ByteArrayOutputStream blocks = new ByteArrayOutputStream();

  /** A column and those below it. */
  private record Part(DataType type, List<Object> values, int[] offsets, List<Part> children) {
    boolean hasMask() {
      return type.isNullable() && !values.isEmpty();
    }
  }

  /** Of columns with as many values each. */
  public KudoWriter(final List<DataType> types, final List<List<Object>> values) {
    for (int i = 0; i < types.size(); i++) {
      columns.add(part(types.get(i), values.get(i)));
    }
  }

  private static byte[] text(final Object value) {
    return value == null ? new byte[0] : value.toString().getBytes(StandardCharsets.UTF_8);
  }

  private static Part part(final DataType type, final List<Object> values) {
    final int[] offsets = new int[values.size() + 1];
    final List<Part> children = new ArrayList<>();
    if (type.getType() == DType.STRING) {
      for (int row = 0; row < values.size(); row++) {
        offsets[row + 1] = offsets[row] + text(values.get(row)).length;
      }
    } else if (type.getType() == DType.LIST) {
      final List<Object> items = new ArrayList<>();
      for (int row = 0; row < values.size(); row++) {
        items.addAll(values.get(row) == null ? List.of() : (List<?>) values.get(row));
        offsets[row + 1] = items.size();
      }
      children.add(part(type.getChild(0), items));
    }
    for (int i = 0; type.getType() == DType.STRUCT && i < type.getNumChildren(); i++) {
      final List<Object> members = new ArrayList<>();
      for (final Object value : values) {
        members.add(value == null ? type.getChild(i).filler() : ((StructData) value).member(i));
      }
      children.add(part(type.getChild(i), members));
    }
    return new Part(type, values, offsets, children);
  }

  /** Does something with a part and those below it, each with the rows that a block has of it. */
  private interface Visitor {
    void visit(Part part, int from, int to);
  }

  private static void walk(
      final List<Part> parts, final int from, final int to, final Visitor visitor) {
    for (final Part part : parts) {
      visitor.visit(part, from, to);
      final boolean isList = part.type.getType() == DType.LIST;
      walk(
          part.children,
          isList ? part.offsets[from] : from,
          isList ? part.offsets[to] : to,
          visitor);
    }
  }

  /**
   * Adds a block of some rows.
   *
   * @return bytes of all blocks so far
   */
  public int append(final int from, final int to) {
    final List<Boolean> masks = new ArrayList<>();
    final ByteArrayOutputStream validity = new ByteArrayOutputStream();
    final ByteArrayOutputStream offsets = new ByteArrayOutputStream();
    final ByteArrayOutputStream data = new ByteArrayOutputStream();
    walk(columns, from, to, (part, first, end) -> masks.add(part.hasMask()));
    walk(columns, from, to, (part, first, end) -> validity(part, first, end, validity));
    walk(columns, from, to, (part, first, end) -> offsets(part, first, end, offsets));
    walk(columns, from, to, (part, first, end) -> data(part, first, end, data));
    final byte[] bits = new byte[(masks.size() + 7) / 8];
    for (int i = 0; i < masks.size(); i++) {
      bits[i / 8] |= (byte) (masks.get(i) ? 1 << i % 8 : 0);
    }
    pad(validity, HEADER_BYTES + bits.length);
    pad(offsets, 0);
    pad(data, 0);
    try (DataOutputStream out = new DataOutputStream(blocks)) {
      out.writeInt(MAGIC);
      out.writeInt(from);
      out.writeInt(to - from);
      out.writeInt(validity.size());
      out.writeInt(offsets.size());
      out.writeInt(validity.size() + offsets.size() + data.size());
      out.writeInt(masks.size());
      out.write(bits);
      validity.writeTo(out);
      offsets.writeTo(out);
      data.writeTo(out);
    } catch (final IOException e) {
      throw new UncheckedIOException(e);
    }
    return blocks.size();
  }

  private static void pad(final ByteArrayOutputStream to, final int before) {
    while ((before + to.size()) % ALIGNMENT != 0) {
      to.write(0);
    }
  }

  private static void validity(
      final Part part, final int from, final int to, final ByteArrayOutputStream out) {
    if (!part.hasMask() || from == to) {
      return;
    }
    for (int at = from / 8; at < (to + 7) / 8; at++) {
      int bits = 0;
      for (int row = 8 * at; row < Math.min(8 * at + 8, part.values.size()); row++) {
        bits |= part.values.get(row) == null ? 0 : 1 << row % 8;
      }
      out.write(bits);
    }
  }

  private static void offsets(
      final Part part, final int from, final int to, final ByteArrayOutputStream out) {
    final boolean hasOffsets =
        part.type.getType() == DType.STRING || part.type.getType() == DType.LIST;
    for (int row = from; hasOffsets && from < to && row <= to; row++) {
      put(part.offsets[row], Integer.BYTES, out);
    }
  }

  private static void data(
      final Part part, final int from, final int to, final ByteArrayOutputStream out) {
    final int width = part.type.getType().getSizeInBytes();
    for (final Object value : part.values.subList(from, to)) {
      if (part.type.getType() == DType.STRING) {
        out.writeBytes(text(value));
      } else if (value instanceof Boolean flag) {
        put(flag ? 1 : 0, width, out);
      } else if (value instanceof Double number) {
        put(Double.doubleToRawLongBits(number), width, out);
      } else if (width > 0) {
        put(value == null ? 0 : ((Number) value).longValue(), width, out);
      }
    }
  }

  /** The lowest bytes of a number, in the machine's order. */
  private static void put(final long value, final int bytes, final ByteArrayOutputStream out) {
    final byte[] all =
        ByteBuffer.allocate(Long.BYTES).order(ByteOrder.LITTLE_ENDIAN).putLong(value).array();
    out.write(all, 0, bytes);
  }

  /** All blocks, one behind the other. */
  public byte[] bytes() {
    return blocks.toByteArray();
  }
}
