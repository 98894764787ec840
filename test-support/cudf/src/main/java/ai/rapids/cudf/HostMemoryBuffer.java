package ai.rapids.cudf;

import org.agrona.UnsafeAccess;

/** As cudf's. */
public class HostMemoryBuffer extends MemoryBuffer {
  HostMemoryBuffer(final long address, final long length, final MemoryBuffer whole) {
    super(address, length, whole);
  }

  public static HostMemoryBuffer allocate(final long bytes) {
    return new HostMemoryBuffer(FakeGpu.allocate(bytes, false), bytes, null);
  }

  static HostMemoryBuffer allocateQuietly(final long bytes) {
    return new HostMemoryBuffer(FakeGpu.allocateQuietly(bytes, false), bytes, null);
  }

  public final synchronized HostMemoryBuffer slice(final long offset, final long length) {
    return new HostMemoryBuffer(reference(offset, length), length, this);
  }

  public final void copyFromDeviceBuffer(final BaseDeviceMemoryBuffer from) {
    from.checkOpen();
    checkRange(0, from.length);
    FakeGpu.touch(from.address, from.length);
    UnsafeAccess.UNSAFE.copyMemory(from.address, address, from.length);
  }

  public final byte getByte(final long offset) {
    checkRange(offset, Byte.BYTES);
    return UnsafeAccess.UNSAFE.getByte(address + offset);
  }

  public final void setByte(final long offset, final byte value) {
    checkRange(offset, Byte.BYTES);
    UnsafeAccess.UNSAFE.putByte(address + offset, value);
  }

  public final int getInt(final long offset) {
    checkRange(offset, Integer.BYTES);
    return UnsafeAccess.UNSAFE.getInt(address + offset);
  }

  public final long getLong(final long offset) {
    checkRange(offset, Long.BYTES);
    return UnsafeAccess.UNSAFE.getLong(address + offset);
  }

  public final void setLong(final long offset, final long value) {
    checkRange(offset, Long.BYTES);
    UnsafeAccess.UNSAFE.putLong(address + offset, value);
  }
}
