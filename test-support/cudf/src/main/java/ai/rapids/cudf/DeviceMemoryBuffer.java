package ai.rapids.cudf;

/** As cudf's. */
public class DeviceMemoryBuffer extends BaseDeviceMemoryBuffer {
  DeviceMemoryBuffer(final long address, final long length, final MemoryBuffer whole) {
    super(address, length, whole);
  }

  public static DeviceMemoryBuffer allocate(final long bytes) {
    return new DeviceMemoryBuffer(FakeGpu.allocate(bytes, true), bytes, null);
  }

  public final synchronized DeviceMemoryBuffer slice(final long offset, final long length) {
    return new DeviceMemoryBuffer(reference(offset, length), length, this);
  }
}
