package ai.rapids.cudf;

/** As {@link MemoryBuffer}. */
public final class ColumnVector extends ColumnView {
  ColumnVector() {}

  @Override
  public synchronized void close() {
    throw new AssertionError("a stand-in for the compiler");
  }

  @Override
  public long getNullCount() {
    throw new AssertionError("a stand-in for the compiler");
  }

  public ColumnVector incRefCount() {
    throw new AssertionError("a stand-in for the compiler");
  }

  public boolean hasValidityVector() {
    throw new AssertionError("a stand-in for the compiler");
  }
}
