package ai.rapids.cudf;

/** As {@link MemoryBuffer}. */
public final class HostColumnVector {
  private HostColumnVector() {}

  /** As {@link MemoryBuffer}. */
  public abstract static class DataType {
    DataType() {}
  }

  /** As {@link MemoryBuffer}. */
  public static class BasicType extends DataType {
    public BasicType(final boolean isNullable, final DType type) {
      throw new AssertionError("a stand-in for the compiler");
    }
  }

  /** As {@link MemoryBuffer}. */
  public static class ListType extends DataType {
    public ListType(final boolean isNullable, final DataType item) {
      throw new AssertionError("a stand-in for the compiler");
    }
  }
}
