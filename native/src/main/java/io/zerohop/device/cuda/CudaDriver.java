package io.zerohop.device.cuda;

import io.zerohop.device.ZerohopException;
import io.zerohop.device.ZerohopException.Category;
import io.zerohop.device.posix.NativeLibrary;
import java.util.List;
import jcuda.LibUtils;
import jcuda.driver.CUdevice;
import jcuda.driver.JCudaDriver;

/**
 * The CUDA driver, loaded once per process and only when somebody asks for a GPU, so that the same
 * jar starts on machines without one. Thread safe.
 */
public final class CudaDriver {
  /** By name first, which honours LD_LIBRARY_PATH; then where containers put it. */
  private static final List<String> LIBRARIES =
      List.of(
          "libcuda.so.1",
          "/usr/local/nvidia/lib64/libcuda.so.1",
          "/usr/lib/x86_64-linux-gnu/libcuda.so.1",
          "/usr/lib/aarch64-linux-gnu/libcuda.so.1",
          "/usr/lib64/libcuda.so.1",
          "/usr/lib/wsl/lib/libcuda.so.1");

  private static boolean tried;
  private static String absence;
  private static int devices;

  private CudaDriver() {}

  /** Why no GPU can be used here, in one sentence; null if one can. */
  public static synchronized String absence() {
    if (!tried) {
      tried = true;
      absence = load();
    }
    return absence;
  }

  /** Whether there is a driver with at least one GPU. */
  public static boolean present() {
    return absence() == null;
  }

  /** GPUs that this process sees; 0 without a driver. */
  public static synchronized int devices() {
    return present() ? devices : 0;
  }

  /** Memory of the smallest GPU that this process sees, in bytes; 0 without a driver. */
  public static synchronized long leastMemory() {
    long least = Long.MAX_VALUE;
    for (int ordinal = 0; ordinal < devices(); ordinal++) {
      final CUdevice device = new CUdevice();
      final long[] bytes = new long[1];
      CudaStatus.check(JCudaDriver.cuDeviceGet(device, ordinal), "cuDeviceGet", "cuda");
      CudaStatus.check(JCudaDriver.cuDeviceTotalMem(bytes, device), "cuDeviceTotalMem", "cuda");
      least = Math.min(least, bytes[0]);
    }
    return least == Long.MAX_VALUE ? 0 : least;
  }

  /** Absolute name of the binding's native library in the jar. */
  public static String bindingResource() {
    return LibUtils.driverResource();
  }

  /**
   * Makes sure that the driver is there.
   *
   * @throws ZerohopException (FALLBACK) if it is not
   */
  static void require() {
    final String reason = absence();
    if (reason != null) {
      throw new ZerohopException(Category.FALLBACK, "cuda: " + reason);
    }
  }

  private static String load() {
    try {
      NativeLibrary.require();
    } catch (final ZerohopException e) {
      return e.getMessage();
    }
    if (LIBRARIES.stream().noneMatch(DriverMemory::open)) {
      return "this machine has no CUDA driver (libcuda.so.1 was not found); blocks stay in host"
          + " memory";
    }
    try {
      LibUtils.loadDriver();
      JCudaDriver.setExceptionsEnabled(false);
    } catch (final NoSuchMethodError e) {
      return "another JCuda is on the class path before Zerohop's, and would load its library from"
          + " where any user may write; take its jar away";
    } catch (final LinkageError e) {
      return "the JCuda library does not load (" + e.getMessage() + ")";
    }
    return initialise();
  }

  private static String initialise() {
    final int status = JCudaDriver.cuInit(0);
    final int[] count = new int[1];
    if (status == 0) {
      JCudaDriver.cuDeviceGetCount(count);
    }
    if (count[0] == 0) {
      return "the CUDA driver shows no GPU to this process ("
          + CudaStatus.name(status)
          + "; see CUDA_VISIBLE_DEVICES)";
    }
    devices = count[0];
    return null;
  }
}
