package io.zerohop.device.cuda;

import java.nio.ByteBuffer;
import jcuda.driver.JCudaDriver;

/**
 * Host memory that every GPU of this process can reach at the address that the host uses. Zeroed.
 * Owned by whoever allocated it.
 */
final class PinnedMemory implements AutoCloseable {
  private static final int FLAGS =
      JCudaDriver.CU_MEMHOSTALLOC_PORTABLE | JCudaDriver.CU_MEMHOSTALLOC_DEVICEMAP;

  private final CudaContext context;
  private final Addresses.HostPointer pointer;
  private final ByteBuffer buffer;
  private boolean closed;

  private PinnedMemory(
      final CudaContext context, final Addresses.HostPointer pointer, final int bytes) {
    this.context = context;
    this.pointer = pointer;
    this.buffer = pointer.getByteBuffer(0, bytes);
  }

  static PinnedMemory allocate(final CudaContext context, final int bytes) {
    context.enter();
    final Addresses.HostPointer pointer = new Addresses.HostPointer();
    CudaStatus.checkAllocation(
        JCudaDriver.cuMemHostAlloc(pointer, bytes, FLAGS),
        "cuMemHostAlloc",
        context.toString(),
        bytes);
    final PinnedMemory memory = new PinnedMemory(context, pointer, bytes);
    memory.buffer.put(0, new byte[bytes]);
    return memory;
  }

  long address() {
    return pointer.value();
  }

  ByteBuffer buffer() {
    return buffer;
  }

  @Override
  public synchronized void close() {
    if (!closed) {
      closed = true;
      context.enter();
      JCudaDriver.cuMemFreeHost(pointer);
    }
  }
}
