package ai.rapids.cudf;

/** As {@link MemoryBuffer}. */
public abstract class BaseDeviceMemoryBuffer extends MemoryBuffer {
  BaseDeviceMemoryBuffer() {}

  public final void copyFromHostBuffer(
      final HostMemoryBuffer from, final long offset, final long length) {
    throw new AssertionError("a stand-in for the compiler");
  }
}
