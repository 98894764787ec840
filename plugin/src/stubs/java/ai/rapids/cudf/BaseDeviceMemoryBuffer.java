package ai.rapids.cudf;

/** As {@link MemoryBuffer}. */
public abstract class BaseDeviceMemoryBuffer extends MemoryBuffer {
  BaseDeviceMemoryBuffer() {}
}
