package io.zerohop.device.cuda;

/** Which tests can run here. */
public final class Gpus {
  private Gpus() {}

  /** Whether there is a GPU and this build has kernels for it. */
  public static boolean one() {
    return CudaDriver.present() && Kernels.absence() == null;
  }

  /** Whether there are two. */
  public static boolean two() {
    return one() && CudaDriver.devices() > 1;
  }
}
