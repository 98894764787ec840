package ai.rapids.cudf;

import ai.rapids.cudf.HostColumnVector.DataType;
import ai.rapids.cudf.HostColumnVector.StructData;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import org.agrona.ExpandableArrayBuffer;
import org.agrona.UnsafeAccess;

/**
 * Lays values out as a packed table: as cudf's {@code pack.cpp} and {@code contiguous_split} do,
 * each buffer at a multiple of 64 bytes, offsets from 0, masks from the first bit.
 */
final class PackedLayout {
  private static final int ALIGNMENT = 64;
  private static final int ENTRY_BYTES = 40;

  private final ExpandableArrayBuffer bytes = new ExpandableArrayBuffer();
  private final List<Entry> entries = new ArrayList<>();
  private final int columns;
  private final int rows;
  private int end;

  private record Entry(DType type, int rows, int nulls, long data, long mask, int children) {}

  /** Of columns, each with as many values. */
  PackedLayout(final List<DataType> types, final List<List<Object>> values) {
    columns = types.size();
    rows = values.get(0).size();
    for (int i = 0; i < columns; i++) {
      column(types.get(i), values.get(i));
    }
    bytes.checkLimit(align()); // It grows as far as that.
  }

  private int align() {
    end = (end + ALIGNMENT - 1) & -ALIGNMENT;
    return end;
  }

  private void column(final DataType type, final List<Object> values) {
    long mask = -1;
    int nulls = 0;
    if (type.isNullable() && !values.isEmpty()) {
      mask = align();
      for (int row = 0; row < values.size(); row++) {
        final int at = end + row / 8;
        final int bit = values.get(row) == null ? 0 : 1 << row % 8;
        bytes.putByte(at, (byte) (row % 8 == 0 ? bit : bytes.getByte(at) | bit));
        nulls += values.get(row) == null ? 1 : 0;
      }
      end += (values.size() + 31) / 32 * 4;
    }
    final int index = entries.size();
    entries.add(null);
    final DType of = type.getType();
    long data = -1;
    int children = type.getNumChildren();
    if (of == DType.STRING) {
      data = strings(values);
      children = values.isEmpty() ? 0 : 1;
    } else if (of == DType.LIST) {
      lists(type.getChild(0), values);
      children = 2;
    } else if (of == DType.STRUCT) {
      structs(type, values);
    } else if (!values.isEmpty()) {
      data = fixed(of, values);
    }
    entries.set(index, new Entry(of, values.size(), nulls, data, mask, children));
  }

  private long fixed(final DType type, final List<Object> values) {
    final long data = align();
    for (final Object value : values) {
      final Number number =
          value instanceof Boolean flag ? (flag ? 1 : 0) : value == null ? 0 : (Number) value;
      switch (type.getTypeId()) {
        case INT8, BOOL8 -> bytes.putByte(end, number.byteValue());
        case INT16 -> bytes.putShort(end, number.shortValue());
        case INT32 -> bytes.putInt(end, number.intValue());
        case INT64 -> bytes.putLong(end, number.longValue());
        default -> bytes.putDouble(end, number.doubleValue());
      }
      end += type.getSizeInBytes();
    }
    return data;
  }

  private long strings(final List<Object> values) {
    if (values.isEmpty()) {
      return -1;
    }
    final long data = align();
    final List<Integer> ends = new ArrayList<>(List.of(0));
    for (final Object value : values) {
      final byte[] text =
          value == null ? new byte[0] : value.toString().getBytes(StandardCharsets.UTF_8);
      bytes.putBytes(end, text);
      end += text.length;
      ends.add((int) (end - data));
    }
    final boolean isEmpty = end == data;
    offsets(ends);
    return isEmpty ? -1 : data;
  }

  private void lists(final DataType itemType, final List<Object> values) {
    final List<Integer> ends = new ArrayList<>(List.of(0));
    final List<Object> items = new ArrayList<>();
    for (final Object value : values) {
      items.addAll(value == null ? List.of() : (List<?>) value);
      ends.add(items.size());
    }
    if (values.isEmpty()) {
      entries.add(new Entry(DType.INT32, 0, 0, -1, -1, 0));
    } else {
      offsets(ends);
    }
    column(itemType, items);
  }

  private void offsets(final List<Integer> ends) {
    final int at = align();
    for (final int one : ends) {
      bytes.putInt(end, one);
      end += Integer.BYTES;
    }
    entries.add(new Entry(DType.INT32, ends.size(), 0, at, -1, 0));
  }

  private void structs(final DataType type, final List<Object> values) {
    for (int member = 0; member < type.getNumChildren(); member++) {
      final List<Object> below = new ArrayList<>();
      for (final Object value : values) {
        below.add(
            value == null ? type.getChild(member).filler() : ((StructData) value).member(member));
      }
      column(type.getChild(member), below);
    }
  }

  int rows() {
    return rows;
  }

  ByteBuffer metadata() {
    final FakeMetadata header = FakeMetadata.played();
    final ByteBuffer metadata =
        ByteBuffer.allocateDirect(header.bytes() + entries.size() * ENTRY_BYTES)
            .order(ByteOrder.nativeOrder());
    header.put(metadata, columns, rows);
    for (final Entry entry : entries) {
      metadata.putInt(entry.type.getTypeId().getNativeId()).putInt(0).putInt(entry.rows);
      metadata.putInt(entry.nulls).putLong(entry.data).putLong(entry.mask);
      metadata.putInt(entry.children).putInt(0);
    }
    return metadata.flip();
  }

  int bytes() {
    return end;
  }

  /** Writes its bytes, which begin at a multiple of 64. */
  void writeTo(final long address) {
    for (int i = 0; i < end; i++) {
      UnsafeAccess.UNSAFE.putByte(address + i, bytes.getByte(i));
    }
  }

  /** Its bytes in memory of the GPU; null if there are none. */
  DeviceMemoryBuffer put() {
    if (end == 0) {
      return null;
    }
    final DeviceMemoryBuffer memory = DeviceMemoryBuffer.allocate(end);
    FakeGpu.touch(memory.address, end);
    writeTo(memory.address);
    return memory;
  }
}
