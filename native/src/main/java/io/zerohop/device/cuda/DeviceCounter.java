package io.zerohop.device.cuda;

import jcuda.driver.JCudaDriver;

/** A word in GPU memory in which the blocks of a launch count; zero at first. */
final class DeviceCounter implements AutoCloseable {
  private static final int BYTES = Integer.BYTES;

  private final Addresses.Result word = new Addresses.Result();

  /**
   * Allocates it.
   *
   * @throws io.zerohop.device.ZerohopException if the GPU has no memory left
   */
  DeviceCounter(final CudaContext context) {
    CudaStatus.checkAllocation(
        JCudaDriver.cuMemAlloc(word, BYTES), "cuMemAlloc", context.toString(), BYTES);
    boolean done = false;
    try {
      CudaStatus.check(
          JCudaDriver.cuMemsetD8(word, (byte) 0, BYTES), "cuMemsetD8", context.toString());
      done = true;
    } finally {
      if (!done) {
        close();
      }
    }
  }

  long address() {
    return word.value();
  }

  /** Frees it; no launch may use it any more. */
  @Override
  public void close() {
    JCudaDriver.cuMemFree(word);
  }
}
