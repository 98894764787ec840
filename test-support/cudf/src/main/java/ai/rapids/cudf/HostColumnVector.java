package ai.rapids.cudf;

import java.util.Arrays;
import java.util.List;

/** As cudf's. */
public final class HostColumnVector extends HostColumnVectorCore {
  private final HostMemoryBuffer memory;

  private HostColumnVector(final Column column, final HostMemoryBuffer memory) {
    super(column);
    this.memory = memory;
  }

  static HostColumnVector copyOf(final List<Object> values, final DataType type) {
    final PackedLayout layout = new PackedLayout(List.of(type), List.of(values));
    final HostMemoryBuffer memory = HostMemoryBuffer.allocateQuietly(Math.max(1, layout.bytes()));
    layout.writeTo(memory.address);
    return new HostColumnVector(Column.of(layout.metadata(), memory.address).get(0), memory);
  }

  @Override
  public void close() {
    memory.close();
  }

  /** As cudf's. */
  public abstract static class DataType {
    public abstract DType getType();

    public abstract boolean isNullable();

    public abstract DataType getChild(int index);

    public abstract int getNumChildren();

    /** A value where there is none, below a struct that is null. */
    final Object filler() {
      if (isNullable()) {
        return null;
      }
      return switch (getType().getTypeId()) {
        case STRING -> "";
        case LIST -> List.of();
        case STRUCT -> {
          final Object[] members = new Object[getNumChildren()];
          Arrays.setAll(members, i -> getChild(i).filler());
          yield new StructData(members);
        }
        default -> 0;
      };
    }
  }

  /** As cudf's. */
  public static class BasicType extends DataType {
    private final boolean isNullable;
    private final DType type;

    public BasicType(final boolean isNullable, final DType type) {
      this.isNullable = isNullable;
      this.type = type;
    }

    @Override
    public DType getType() {
      return type;
    }

    @Override
    public boolean isNullable() {
      return isNullable;
    }

    @Override
    public DataType getChild(final int index) {
      return null;
    }

    @Override
    public int getNumChildren() {
      return 0;
    }
  }

  /** As cudf's. */
  public static class ListType extends BasicType {
    private final DataType item;

    public ListType(final boolean isNullable, final DataType item) {
      super(isNullable, DType.LIST);
      this.item = item;
    }

    @Override
    public DataType getChild(final int index) {
      return item;
    }

    @Override
    public int getNumChildren() {
      return 1;
    }
  }

  /** As cudf's. */
  public static class StructType extends BasicType {
    private final List<DataType> members;

    public StructType(final boolean isNullable, final List<DataType> members) {
      super(isNullable, DType.STRUCT);
      this.members = members;
    }

    public StructType(final boolean isNullable, final DataType... members) {
      this(isNullable, List.of(members));
    }

    @Override
    public DataType getChild(final int index) {
      return members.get(index);
    }

    @Override
    public int getNumChildren() {
      return members.size();
    }
  }

  /** As cudf's. */
  public static class StructData {
    private final List<Object> members;

    public StructData(final List<Object> members) {
      this.members = members;
    }

    public StructData(final Object... members) {
      this(Arrays.asList(members));
    }

    final Object member(final int index) {
      return members.get(index);
    }
  }
}
