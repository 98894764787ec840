package ai.rapids.cudf;

import ai.rapids.cudf.HostColumnVector.BasicType;
import ai.rapids.cudf.HostColumnVector.DataType;
import ai.rapids.cudf.HostColumnVector.StructData;
import java.util.Arrays;
import java.util.List;

/** As cudf's: a column in memory of the GPU, of which it holds a reference. */
public final class ColumnVector extends ColumnView {
  /** Null if the column takes none. */
  private final DeviceMemoryBuffer memory;

  private int references = 1;

  /**
   * @param memory a reference is taken
   */
  ColumnVector(final Column column, final DeviceMemoryBuffer memory) {
    super(column);
    this.memory = memory;
    if (memory != null) {
      memory.incRefCount();
    }
    FakeGpu.columnOpened();
  }

  public static ColumnVector fromInts(final int... values) {
    return of(new BasicType(false, DType.INT32), Arrays.stream(values).boxed().toArray());
  }

  public static ColumnVector fromLongs(final long... values) {
    return of(new BasicType(false, DType.INT64), Arrays.stream(values).boxed().toArray());
  }

  public static ColumnVector fromBoxedBytes(final Byte... values) {
    return of(new BasicType(hasNull(values), DType.INT8), values);
  }

  public static ColumnVector fromBoxedShorts(final Short... values) {
    return of(new BasicType(hasNull(values), DType.INT16), values);
  }

  public static ColumnVector fromBoxedInts(final Integer... values) {
    return of(new BasicType(hasNull(values), DType.INT32), values);
  }

  public static ColumnVector fromBoxedLongs(final Long... values) {
    return of(new BasicType(hasNull(values), DType.INT64), values);
  }

  public static ColumnVector fromBoxedDoubles(final Double... values) {
    return of(new BasicType(hasNull(values), DType.FLOAT64), values);
  }

  public static ColumnVector fromBoxedBooleans(final Boolean... values) {
    return of(new BasicType(hasNull(values), DType.BOOL8), values);
  }

  public static ColumnVector fromStrings(final String... values) {
    return of(new BasicType(hasNull(values), DType.STRING), values);
  }

  @SafeVarargs
  @SuppressWarnings("varargs")
  public static <T> ColumnVector fromLists(final DataType type, final List<T>... values) {
    return of(type, values);
  }

  public static ColumnVector fromStructs(final DataType type, final StructData... values) {
    return of(type, values);
  }

  private static boolean hasNull(final Object[] values) {
    return Arrays.asList(values).contains(null);
  }

  private static ColumnVector of(final DataType type, final Object[] values) {
    final PackedLayout layout = new PackedLayout(List.of(type), List.of(Arrays.asList(values)));
    try (DeviceMemoryBuffer memory = layout.put()) {
      final long address = memory == null ? 0 : memory.address;
      return new ColumnVector(Column.of(layout.metadata(), address).get(0), memory);
    }
  }

  private synchronized void checkOpen() {
    FakeGpu.require(references > 0, "a column is used that is closed");
    if (memory != null) {
      FakeGpu.touch(memory.getAddress(), memory.getLength());
    }
  }

  @Override
  Column column() {
    checkOpen();
    return super.column();
  }

  @Override
  public long getNullCount() {
    return column().nulls();
  }

  public boolean hasValidityVector() {
    return column().mask() != 0;
  }

  public HostColumnVector copyToHost() {
    return HostColumnVector.copyOf(column().values(), column().type());
  }

  public synchronized ColumnVector incRefCount() {
    FakeGpu.require(references > 0, "a reference is taken on a column that is closed");
    references++;
    return this;
  }

  public synchronized int getRefCount() {
    return references;
  }

  @Override
  public void close() {
    FakeGpu.columnCloses();
    giveBack();
  }

  private synchronized void giveBack() {
    references--;
    if (references < 0) {
      throw new IllegalStateException("Close called too many times " + this);
    }
    if (references == 0) {
      closeHandle();
      if (memory != null) {
        memory.close();
      }
    }
  }
}
