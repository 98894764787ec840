package io.zerohop.device.cuda;

import io.zerohop.device.ZerohopException;
import java.util.function.Consumer;
import jcuda.Pointer;
import jcuda.driver.CUdeviceptr;
import jcuda.driver.JCudaDriver;

/**
 * Host memory of others that the driver has locked, so that every GPU of this process reaches it at
 * the address that the host uses. Owned by whoever registered it; the memory stays its owner's.
 */
final class RegisteredMemory extends LockedMemory {
  private static final int FLAGS =
      JCudaDriver.CU_MEMHOSTREGISTER_PORTABLE | JCudaDriver.CU_MEMHOSTREGISTER_DEVICEMAP;

  private final long address;

  private RegisteredMemory(
      final CudaContext context,
      final long address,
      final long bytes,
      final Consumer<Object> onClose) {
    super(context, bytes, onClose);
    this.address = address;
  }

  static RegisteredMemory register(
      final CudaContext context,
      final long address,
      final long bytes,
      final Consumer<Object> onClose) {
    context.enter();
    final Pointer host = Addresses.hostRange(address);
    CudaStatus.check(
        JCudaDriver.cuMemHostRegister(host, bytes, FLAGS), "cuMemHostRegister", context.toString());
    final RegisteredMemory memory = new RegisteredMemory(context, address, bytes, onClose);
    final Addresses.Result seen = new Addresses.Result();
    boolean same = false;
    try {
      CudaStatus.check(
          JCudaDriver.cuMemHostGetDevicePointer((CUdeviceptr) seen, host, 0),
          "cuMemHostGetDevicePointer",
          context.toString());
      same = seen.value() == address;
    } finally {
      if (!same) {
        memory.close();
      }
    }
    if (!same) {
      throw new ZerohopException(
          ZerohopException.Category.RETRY,
          context + " reaches host memory at other addresses than the host does");
    }
    return memory;
  }

  @Override
  public long address() {
    return address;
  }

  @Override
  void unlock() {
    JCudaDriver.cuMemHostUnregister(Addresses.hostRange(address));
  }

  @Override
  public String toString() {
    return "pinned range of " + bytes() + " bytes";
  }
}
