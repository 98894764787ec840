package ai.rapids.cudf;

import ai.rapids.cudf.HostColumnVector.DataType;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;

/** As cudf's. */
public final class Table implements AutoCloseable {
  private final ColumnVector[] columns;
  private final long rows;
  private boolean closed;

  public Table(final ColumnVector... columns) {
    if (columns.length == 0) {
      throw new IllegalArgumentException("a table has a column at least");
    }
    this.columns = columns.clone();
    this.rows = columns[0].getRowCount();
    for (final ColumnVector column : columns) {
      if (column.getRowCount() != rows) {
        throw new IllegalArgumentException("columns of a table have as many rows");
      }
    }
    for (final ColumnVector column : columns) {
      column.incRefCount();
    }
  }

  /**
   * A table of packed bytes, which need not be there yet.
   *
   * @param data each column takes a reference
   */
  public static Table fromPackedTable(final ByteBuffer metadata, final DeviceMemoryBuffer data) {
    FakeGpu.require(metadata.isDirect(), "cudf reads metadata where it lies");
    return of(Column.of(metadata, data.getAddress()), data);
  }

  private static Table of(final List<Column> parts, final DeviceMemoryBuffer memory) {
    final List<ColumnVector> columns = new ArrayList<>();
    parts.forEach(part -> columns.add(new ColumnVector(part, memory)));
    final Table table = new Table(columns.toArray(new ColumnVector[0]));
    columns.forEach(ColumnVector::close);
    return table;
  }

  /** A table of values, for other classes of this fake. */
  public static Table of(final List<DataType> types, final List<List<Object>> values) {
    final PackedLayout layout = new PackedLayout(types, values);
    try (DeviceMemoryBuffer memory = layout.put()) {
      return of(Column.of(layout.metadata(), memory == null ? 0 : memory.address), memory);
    }
  }

  /** Types of the columns, for other classes of this fake. */
  public List<DataType> types() {
    return Arrays.stream(columns).map(column -> column.column().type()).toList();
  }

  /** Values column by column, for other classes of this fake. */
  public List<List<Object>> values() {
    return Arrays.stream(columns).map(column -> column.column().values()).toList();
  }

  public static Table concatenate(final Table... tables) {
    final List<DataType> types = new ArrayList<>(tables[0].types());
    final List<List<Object>> values = new ArrayList<>();
    types.forEach(type -> values.add(new ArrayList<>()));
    for (final Table table : tables) {
      for (int i = 0; i < types.size(); i++) {
        types.set(i, either(types.get(i), table.types().get(i)));
        values.get(i).addAll(table.values().get(i));
      }
    }
    return of(types, values);
  }

  /** The type that has nulls wherever one of two has. */
  private static DataType either(final DataType one, final DataType other) {
    final boolean isNullable = one.isNullable() || other.isNullable();
    final List<DataType> children = new ArrayList<>();
    for (int i = 0; i < one.getNumChildren(); i++) {
      children.add(either(one.getChild(i), other.getChild(i)));
    }
    return switch (one.getType().getTypeId()) {
      case LIST -> new HostColumnVector.ListType(isNullable, children.get(0));
      case STRUCT -> new HostColumnVector.StructType(isNullable, children);
      default -> new HostColumnVector.BasicType(isNullable, one.getType());
    };
  }

  public ContiguousTable[] contiguousSplit(final int... indices) {
    final List<List<Object>> values = values();
    final ContiguousTable[] tables = new ContiguousTable[indices.length + 1];
    boolean done = false;
    try {
      for (int i = 0; i < tables.length; i++) {
        final int from = i == 0 ? 0 : indices[i - 1];
        final int to = i == indices.length ? (int) rows : indices[i];
        tables[i] =
            new ContiguousTable(
                new PackedLayout(
                    types(), values.stream().map(column -> column.subList(from, to)).toList()));
      }
      done = true;
      return tables;
    } finally {
      for (int i = 0; !done && i < tables.length && tables[i] != null; i++) {
        tables[i].close();
      }
    }
  }

  public ColumnVector getColumn(final int index) {
    return columns[index];
  }

  public final int getNumberOfColumns() {
    return columns.length;
  }

  public final long getRowCount() {
    return rows;
  }

  @Override
  public void close() {
    if (!closed) { // As cudf's: a second time it does nothing.
      closed = true;
      for (final ColumnVector column : columns) {
        column.close();
      }
    }
  }
}
