package io.zerohop.device.cuda;

import java.nio.ByteBuffer;
import java.util.function.Consumer;
import jcuda.driver.JCudaDriver;
import org.agrona.UnsafeAccess;

/**
 * Host memory that every GPU of this process can reach at the address that the host uses. Zeroed.
 * Owned by whoever allocated it.
 */
final class PinnedMemory extends LockedMemory {
  private static final int FLAGS =
      JCudaDriver.CU_MEMHOSTALLOC_PORTABLE | JCudaDriver.CU_MEMHOSTALLOC_DEVICEMAP;

  private final Addresses.HostPointer pointer;

  private PinnedMemory(
      final CudaContext context,
      final Addresses.HostPointer pointer,
      final long bytes,
      final Consumer<Object> onClose) {
    super(context, bytes, onClose);
    this.pointer = pointer;
  }

  static PinnedMemory allocate(final CudaContext context, final long bytes) {
    return allocate(context, bytes, memory -> {});
  }

  static PinnedMemory allocate(
      final CudaContext context, final long bytes, final Consumer<Object> onClose) {
    context.enter();
    final Addresses.HostPointer pointer = new Addresses.HostPointer();
    CudaStatus.checkAllocation(
        JCudaDriver.cuMemHostAlloc(pointer, bytes, FLAGS),
        "cuMemHostAlloc",
        context.toString(),
        bytes);
    final PinnedMemory memory = new PinnedMemory(context, pointer, bytes, onClose);
    UnsafeAccess.UNSAFE.setMemory(memory.address(), bytes, (byte) 0);
    return memory;
  }

  @Override
  public long address() {
    return pointer.value();
  }

  /** All of it, at most what an int can index. */
  ByteBuffer buffer() {
    return pointer.getByteBuffer(0, bytes());
  }

  @Override
  void unlock() {
    JCudaDriver.cuMemFreeHost(pointer);
  }

  @Override
  public String toString() {
    return "pinned memory of " + bytes() + " bytes";
  }
}
