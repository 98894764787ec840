package ai.rapids.cudf;

/** As {@link MemoryBuffer}. */
public final class DType {
  public static final DType INT32 = null;
  public static final DType STRING = null;
  public static final DType LIST = null;

  private DType() {}

  public int getSizeInBytes() {
    throw new AssertionError("a stand-in for the compiler");
  }

  public boolean isNestedType() {
    throw new AssertionError("a stand-in for the compiler");
  }
}
