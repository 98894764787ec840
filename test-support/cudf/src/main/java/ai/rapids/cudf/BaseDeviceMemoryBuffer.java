package ai.rapids.cudf;

import org.agrona.UnsafeAccess;

/** As cudf's. */
public abstract class BaseDeviceMemoryBuffer extends MemoryBuffer {
  BaseDeviceMemoryBuffer(final long address, final long length, final MemoryBuffer whole) {
    super(address, length, whole);
  }

  public final void copyFromHostBuffer(
      final HostMemoryBuffer from, final long offset, final long bytes) {
    from.checkRange(offset, bytes);
    checkRange(0, bytes);
    FakeGpu.touch(address, bytes);
    UnsafeAccess.UNSAFE.copyMemory(from.address + offset, address, bytes);
  }

  public final void copyFromHostBuffer(final HostMemoryBuffer from) {
    copyFromHostBuffer(from, 0, from.length);
  }
}
