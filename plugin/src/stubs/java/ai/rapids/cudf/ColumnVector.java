package ai.rapids.cudf;

import java.util.List;

/** As {@link MemoryBuffer}. */
public final class ColumnVector extends ColumnView {
  ColumnVector() {}

  public static ColumnVector fromBoxedInts(final Integer... values) {
    throw new AssertionError("a stand-in for the compiler");
  }

  public static ColumnVector fromStrings(final String... values) {
    throw new AssertionError("a stand-in for the compiler");
  }

  @SafeVarargs
  public static <T> ColumnVector fromLists(
      final HostColumnVector.DataType type, final List<T>... values) {
    throw new AssertionError("a stand-in for the compiler");
  }

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
