package io.zerohop.device.cuda;

import io.zerohop.device.Message;
import io.zerohop.device.ZerohopException;
import io.zerohop.device.ZerohopException.Category;
import io.zerohop.device.posix.NativeLibrary;
import java.util.List;
import jcuda.LibUtils;
import jcuda.driver.CUdevice;
import jcuda.driver.JCudaDriver;
import org.jspecify.annotations.Nullable;

/**
 * The CUDA driver, loaded once per process and only when somebody asks for a GPU, so that the same
 * jar starts on machines without one; nothing else of this package works there. Needs no toolkit.
 * Thread safe.
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
  private static @Nullable Message absence;
  private static int devices;

  private CudaDriver() {}

  /** Returns why no GPU can be used here, if none can. */
  public static synchronized @Nullable Message absence() {
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
    final Message reason = absence();
    if (reason != null) {
      throw new ZerohopException(Category.FALLBACK, reason);
    }
  }

  private static @Nullable Message load() {
    try {
      NativeLibrary.require();
    } catch (final ZerohopException e) {
      return e.message();
    }
    if (LIBRARIES.stream().noneMatch(DriverMemory::open)) {
      return Message.of("this machine has no CUDA driver, so blocks stay in host memory")
          .because("libcuda.so.1 was not found");
    }
    try {
      LibUtils.loadDriver();
      JCudaDriver.setExceptionsEnabled(false);
    } catch (final NoSuchMethodError e) {
      return Message.of(
              "another JCuda precedes Zerohop's on the class path, and would load its library from"
                  + " a folder that any user may write to")
          .remedy("remove its jar from the class path");
    } catch (final LinkageError e) {
      return Message.of("the JCuda library does not load").because(e);
    }
    return initialise();
  }

  private static @Nullable Message initialise() {
    final int status = JCudaDriver.cuInit(0);
    final int[] count = new int[1];
    if (status == 0) {
      JCudaDriver.cuDeviceGetCount(count);
    }
    if (count[0] == 0) {
      return Message.of("the CUDA driver shows no GPU to this process")
          .because(CudaStatus.name(status))
          .remedy("check CUDA_VISIBLE_DEVICES, and the GPUs that the container was given");
    }
    devices = count[0];
    return null;
  }
}
