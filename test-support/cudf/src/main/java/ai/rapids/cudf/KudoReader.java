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
import java.util.BitSet;
import java.util.List;

/** Reads what {@link KudoWriter} writes: block after block, into one list of values a column. */
public final class KudoReader {
  private static final int MAGIC = 0x4b554430;
  private static final int HEADER_BYTES = 28;

  private final List<DataType> columns;
  private final byte[] bytes;
  private final List<List<Object>> values = new ArrayList<>();

  /** Columns, in depth-first order, that have a mask in one of the blocks. */
  private final BitSet nullable = new BitSet();

  private ByteBuffer validity;
  private ByteBuffer offsets;
  private ByteBuffer data;
  private BitSet masks;
  private int column;

  /**
   * @param bytes in which the blocks are
   */
  public KudoReader(final List<DataType> columns, final byte[] bytes) {
    this.columns = columns;
    this.bytes = bytes;
    columns.forEach(of -> values.add(new ArrayList<>()));
  }

  /** Reads one block. */
  public void read(final int from, final int to) {
    final ByteBuffer header = ByteBuffer.wrap(bytes, from, to - from);
    FakeGpu.require(header.getInt() == MAGIC, "no Kudo block begins here");
    final int first = header.getInt();
    final int rows = header.getInt();
    final int validityBytes = header.getInt();
    final int offsetBytes = header.getInt();
    final int total = header.getInt();
    final int count = header.getInt();
    final int at = from + HEADER_BYTES + (count + 7) / 8;
    FakeGpu.require(at + total == to, "a Kudo block is as long as its header says");
    masks = BitSet.valueOf(ByteBuffer.wrap(bytes, from + HEADER_BYTES, (count + 7) / 8));
    validity = part(at, validityBytes);
    offsets = part(at + validityBytes, offsetBytes);
    data = part(at + validityBytes + offsetBytes, total - validityBytes - offsetBytes);
    nullable.or(masks);
    column = 0;
    for (int i = 0; i < columns.size(); i++) {
      values.get(i).addAll(next(columns.get(i), first, rows));
    }
    FakeGpu.require(column == count, "a Kudo block has the columns of its table");
  }

  private ByteBuffer part(final int at, final int length) {
    return ByteBuffer.wrap(bytes, at, length).slice().order(ByteOrder.LITTLE_ENDIAN);
  }

  private List<Object> next(final DataType type, final int first, final int rows) {
    final boolean[] present = present(masks.get(column++), first, rows);
    final int[] ends = ends(type.getType(), rows);
    final List<Object> items = new ArrayList<>();
    final List<List<Object>> members = new ArrayList<>();
    if (type.getType() == DType.LIST) {
      items.addAll(next(type.getChild(0), ends[0], ends[rows] - ends[0]));
    }
    for (int i = 0; type.getType() == DType.STRUCT && i < type.getNumChildren(); i++) {
      members.add(next(type.getChild(i), first, rows));
    }
    final List<Object> found = new ArrayList<>();
    for (int row = 0; row < rows; row++) {
      final int at = row;
      final Object value =
          switch (type.getType().getTypeId()) {
            case INT8 -> data.get();
            case INT16 -> data.getShort();
            case INT32 -> data.getInt();
            case INT64 -> data.getLong();
            case FLOAT64 -> data.getDouble();
            case BOOL8 -> data.get() != 0;
            case STRING -> text(ends[row + 1] - ends[row]);
            case LIST ->
                new ArrayList<>(items.subList(ends[row] - ends[0], ends[row + 1] - ends[0]));
            case STRUCT -> new StructData(members.stream().map(all -> all.get(at)).toList());
          };
      found.add(present[row] ? value : null);
    }
    return found;
  }

  private boolean[] present(final boolean hasMask, final int first, final int rows) {
    final boolean[] present = new boolean[rows];
    final byte[] mask = new byte[hasMask && rows > 0 ? (first + rows + 7) / 8 - first / 8 : 0];
    validity.get(mask);
    for (int row = 0; row < rows; row++) {
      final int bit = first % 8 + row;
      present[row] = !hasMask || (mask[bit / 8] >> bit % 8 & 1) == 1;
    }
    return present;
  }

  private int[] ends(final DType type, final int rows) {
    final int[] ends = new int[rows + 1];
    for (int i = 0; rows > 0 && (type == DType.STRING || type == DType.LIST) && i <= rows; i++) {
      ends[i] = offsets.getInt();
    }
    return ends;
  }

  private String text(final int length) {
    final byte[] text = new byte[length];
    data.get(text);
    return new String(text, StandardCharsets.UTF_8);
  }

  /** The columns' types, with nulls where a block had a mask. */
  public List<DataType> types() {
    column = 0;
    return columns.stream().map(this::withMask).toList();
  }

  private DataType withMask(final DataType type) {
    final boolean isNullable = nullable.get(column++);
    final List<DataType> children = new ArrayList<>();
    for (int i = 0; i < type.getNumChildren(); i++) {
      children.add(withMask(type.getChild(i)));
    }
    return switch (type.getType().getTypeId()) {
      case LIST -> new ListType(isNullable, children.get(0));
      case STRUCT -> new StructType(isNullable, children);
      default -> new BasicType(isNullable, type.getType());
    };
  }

  /** The columns' values. */
  public List<List<Object>> values() {
    return values;
  }
}
