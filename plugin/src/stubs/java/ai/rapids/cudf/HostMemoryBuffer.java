package ai.rapids.cudf;

/** As {@link MemoryBuffer}. */
public class HostMemoryBuffer extends MemoryBuffer {
  HostMemoryBuffer() {}

  public static HostMemoryBuffer allocate(final long bytes) {
    throw new AssertionError("a stand-in for the compiler");
  }

  public final synchronized HostMemoryBuffer slice(final long offset, final long length) {
    throw new AssertionError("a stand-in for the compiler");
  }

  public final void copyFromDeviceBuffer(final BaseDeviceMemoryBuffer buffer) {
    throw new AssertionError("a stand-in for the compiler");
  }
}
