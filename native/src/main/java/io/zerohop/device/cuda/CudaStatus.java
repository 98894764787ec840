package io.zerohop.device.cuda;

import io.zerohop.device.DeviceMemoryException;
import io.zerohop.device.Message;
import io.zerohop.device.ZerohopException;
import io.zerohop.device.ZerohopException.Category;
import java.util.Set;
import java.util.concurrent.atomic.AtomicInteger;
import jcuda.driver.CUresult;

/**
 * Turns the driver's status into failures with a category. Errors after which the driver refuses
 * everything in this process are FATAL: what the executor holds in GPU memory cannot be read, and
 * must not be trusted, any more.
 */
final class CudaStatus {
  static final int SUCCESS = CUresult.CUDA_SUCCESS;
  static final int NOT_READY = CUresult.CUDA_ERROR_NOT_READY;

  /** A kernel left its tensor memory taken; JCuda's driver API is older than this status. */
  private static final int TENSOR_MEMORY_LEAK = 721;

  /**
   * What ends the context, and that the device is gone for a process that had it. {@code
   * ILLEGAL_STATE} (401) is not among them: it is said of one resource of a call, and the context
   * goes on.
   */
  private static final Set<Integer> STICKY =
      Set.of(
          CUresult.CUDA_ERROR_ECC_UNCORRECTABLE,
          CUresult.CUDA_ERROR_NVLINK_UNCORRECTABLE,
          CUresult.CUDA_ERROR_ILLEGAL_ADDRESS,
          CUresult.CUDA_ERROR_LAUNCH_TIMEOUT,
          CUresult.CUDA_ERROR_CONTEXT_IS_DESTROYED,
          CUresult.CUDA_ERROR_ASSERT,
          CUresult.CUDA_ERROR_HARDWARE_STACK_ERROR,
          CUresult.CUDA_ERROR_ILLEGAL_INSTRUCTION,
          CUresult.CUDA_ERROR_MISALIGNED_ADDRESS,
          CUresult.CUDA_ERROR_INVALID_ADDRESS_SPACE,
          CUresult.CUDA_ERROR_INVALID_PC,
          CUresult.CUDA_ERROR_LAUNCH_FAILED,
          TENSOR_MEMORY_LEAK,
          CUresult.CUDA_ERROR_DEVICE_UNAVAILABLE,
          CUresult.CUDA_ERROR_UNKNOWN);

  /** What the next checked call pretends to have returned; for tests of what cannot be provoked. */
  private static final AtomicInteger INJECTED = new AtomicInteger();

  private CudaStatus() {}

  /** Makes the next check of any thread see this status. */
  static void inject(final int status) {
    INJECTED.set(status);
  }

  /** The status to believe: an injected one once, else the real one. */
  static int observe(final int status) {
    final int injected = INJECTED.get();
    return injected != 0 && INJECTED.compareAndSet(injected, 0) ? injected : status;
  }

  /**
   * Checks a call.
   *
   * @param where the device, for the message
   * @throws ZerohopException FATAL after an error that ends the context, else RETRY
   */
  static void check(final int status, final String call, final String where) {
    final int seen = observe(status);
    if (seen != SUCCESS) {
      throw failure(seen, call, where);
    }
  }

  /** Checks a call that takes memory. */
  static void checkAllocation(
      final int status, final String call, final String where, final long bytes) {
    final int seen = observe(status);
    if (seen == CUresult.CUDA_ERROR_OUT_OF_MEMORY) {
      throw new DeviceMemoryException(
          Message.of("no GPU memory for " + bytes + " bytes").at(where).because(call), bytes, null);
    }
    if (seen != SUCCESS) {
      throw failure(seen, call, where);
    }
  }

  static ZerohopException failure(final int status, final String call, final String where) {
    if (STICKY.contains(status)) {
      return new ZerohopException(
          Category.FATAL,
          Message.of(
                  "the GPU's context is lost, and with it every block that this executor holds in"
                      + " GPU memory; the executor ends so that Spark computes them again")
              .at(where)
              .because(call + " reported " + name(status))
              .remedy("look for the Xid in the kernel log (dmesg)"));
    }
    return new ZerohopException(
        Category.RETRY, Message.of(call + " failed").at(where).because(name(status)));
  }

  static String name(final int status) {
    return CUresult.stringFor(status) + " (" + status + ")";
  }
}
