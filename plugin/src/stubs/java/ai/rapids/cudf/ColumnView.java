package ai.rapids.cudf;

/** As {@link MemoryBuffer}. */
public class ColumnView implements AutoCloseable {
  ColumnView() {}

  public final DType getType() {
    throw new AssertionError("a stand-in for the compiler");
  }

  public long getNullCount() {
    throw new AssertionError("a stand-in for the compiler");
  }

  public final long getRowCount() {
    throw new AssertionError("a stand-in for the compiler");
  }

  public final int getNumChildren() {
    throw new AssertionError("a stand-in for the compiler");
  }

  public final ColumnView getChildColumnView(final int index) {
    throw new AssertionError("a stand-in for the compiler");
  }

  public final BaseDeviceMemoryBuffer getValid() {
    throw new AssertionError("a stand-in for the compiler");
  }

  public final BaseDeviceMemoryBuffer getOffsets() {
    throw new AssertionError("a stand-in for the compiler");
  }

  public final long getNativeView() {
    throw new AssertionError("a stand-in for the compiler");
  }

  @Override
  public void close() {
    throw new AssertionError("a stand-in for the compiler");
  }
}
