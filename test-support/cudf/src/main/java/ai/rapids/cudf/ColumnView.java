package ai.rapids.cudf;

import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicLong;

/** As cudf's. */
public class ColumnView implements AutoCloseable {
  private static final Map<Long, ColumnView> BY_HANDLE = new ConcurrentHashMap<>();
  private static final AtomicLong NEXT_HANDLE = new AtomicLong(1);

  private final Column column;
  private final long handle = NEXT_HANDLE.getAndIncrement();

  ColumnView(final Column column) {
    this.column = column;
    BY_HANDLE.put(handle, this);
  }

  Column column() {
    return column;
  }

  public final DType getType() {
    return column().type().getType();
  }

  public final long getRowCount() {
    return column().rows();
  }

  public long getNullCount() {
    return column().nulls();
  }

  public final int getNumChildren() {
    return column().children().size();
  }

  /** A view that its caller closes. */
  public final ColumnView getChildColumnView(final int index) {
    FakeGpu.columnOpened();
    return new ColumnView(column().children().get(index));
  }

  public final BaseDeviceMemoryBuffer getValid() {
    return view(column().mask(), (column().rows() + 31L) / 32 * 4);
  }

  public final BaseDeviceMemoryBuffer getOffsets() {
    return view(column().offsets(), Integer.BYTES * (column().rows() + 1L));
  }

  private static BaseDeviceMemoryBuffer view(final long address, final long bytes) {
    return address == 0 ? null : new DeviceMemoryBufferView(address, bytes);
  }

  public final long getNativeView() {
    return handle;
  }

  private static long getNativeDataAddress(final long handle) {
    FakeGpu.require(BY_HANDLE.containsKey(handle), "a view is used that is closed");
    return BY_HANDLE.get(handle).column().data();
  }

  /** Forgets its handle, which nobody may use any more. */
  final void closeHandle() {
    FakeGpu.columnClosed();
    FakeGpu.require(BY_HANDLE.remove(handle) != null, "a view is closed twice");
  }

  @Override
  public void close() {
    closeHandle();
  }
}
