package ai.rapids.cudf;

import ai.rapids.cudf.HostColumnVector.BasicType;
import ai.rapids.cudf.HostColumnVector.DataType;
import ai.rapids.cudf.HostColumnVector.ListType;
import ai.rapids.cudf.HostColumnVector.StructData;
import ai.rapids.cudf.HostColumnVector.StructType;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import org.agrona.UnsafeAccess;

/**
 * Where a column lies in memory; owns nothing. Values are null, Byte, Short, Integer, Long, Double,
 * Boolean, String, a List of a list's items, or the StructData of a struct's members.
 *
 * @param type nullable if there is a mask of nulls
 * @param nulls how many there are
 * @param data address of the values or characters; 0 if there are none
 * @param mask address of a bit for each row, set where there is a value; 0 if all have one
 * @param offsets address of where each string or list begins, and the last one ends; 0 if it is of
 *     another type
 * @param children a list's items, or a struct's members
 */
record Column(
    DataType type, int rows, int nulls, long data, long mask, long offsets, List<Column> children) {

  /** Columns of a packed table. */
  static List<Column> of(final ByteBuffer metadata, final long address) {
    final ByteBuffer from = metadata.duplicate().order(ByteOrder.nativeOrder());
    final FakeMetadata header = FakeMetadata.played();
    final int count = header.columns(from.slice().order(ByteOrder.nativeOrder()));
    from.position(from.position() + header.bytes());
    final List<Column> columns = new ArrayList<>();
    for (int i = 0; i < count; i++) {
      columns.add(next(from, address));
    }
    FakeGpu.require(!from.hasRemaining(), "metadata of a packed table has more than its columns");
    return columns;
  }

  private static Column next(final ByteBuffer from, final long address) {
    final DType type = DType.ofNative(from.getInt());
    from.getInt();
    final int rows = from.getInt();
    final int nulls = from.getInt();
    final long data = at(from.getLong(), address);
    final long mask = at(from.getLong(), address);
    final int count = from.getInt();
    from.getInt();
    final List<Column> children = new ArrayList<>();
    for (int i = 0; i < count; i++) {
      children.add(next(from, address));
    }
    final boolean hasOffsets = type == DType.STRING || type == DType.LIST;
    final long offsets = hasOffsets && count > 0 ? children.remove(0).data : 0;
    return new Column(
        dataType(type, mask != 0, children), rows, nulls, data, mask, offsets, children);
  }

  private static long at(final long offset, final long address) {
    return offset < 0 ? 0 : address + offset;
  }

  private static DataType dataType(
      final DType type, final boolean isNullable, final List<Column> children) {
    if (type == DType.LIST) {
      return new ListType(isNullable, children.get(0).type);
    }
    return type == DType.STRUCT
        ? new StructType(isNullable, children.stream().map(Column::type).toList())
        : new BasicType(isNullable, type);
  }

  boolean isNull(final long row) {
    return mask != 0 && (UnsafeAccess.UNSAFE.getByte(mask + row / 8) >> row % 8 & 1) == 0;
  }

  int offset(final long row) {
    return offsets == 0 ? 0 : UnsafeAccess.UNSAFE.getInt(offsets + Integer.BYTES * row);
  }

  String text(final long row) {
    final byte[] bytes = new byte[offset(row + 1) - offset(row)];
    for (int i = 0; i < bytes.length; i++) {
      bytes[i] = UnsafeAccess.UNSAFE.getByte(data + offset(row) + i);
    }
    return new String(bytes, StandardCharsets.UTF_8);
  }

  /** All values. */
  List<Object> values() {
    final List<Object> values = new ArrayList<>();
    for (int row = 0; row < rows; row++) {
      values.add(value(row));
    }
    return values;
  }

  private Object value(final int row) {
    if (isNull(row)) {
      return null;
    }
    final long at = data + (long) row * type.getType().getSizeInBytes();
    return switch (type.getType().getTypeId()) {
      case INT8 -> UnsafeAccess.UNSAFE.getByte(at);
      case INT16 -> UnsafeAccess.UNSAFE.getShort(at);
      case INT32 -> UnsafeAccess.UNSAFE.getInt(at);
      case INT64 -> UnsafeAccess.UNSAFE.getLong(at);
      case FLOAT64 -> UnsafeAccess.UNSAFE.getDouble(at);
      case BOOL8 -> UnsafeAccess.UNSAFE.getByte(at) != 0;
      case STRING -> text(row);
      case LIST -> {
        final List<Object> items = new ArrayList<>();
        for (int item = offset(row); item < offset(row + 1); item++) {
          items.add(children.get(0).value(item));
        }
        yield items;
      }
      case STRUCT -> {
        final List<Object> members = new ArrayList<>();
        children.forEach(child -> members.add(child.value(row)));
        yield new StructData(members);
      }
    };
  }
}
