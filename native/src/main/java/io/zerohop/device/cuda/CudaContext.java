package io.zerohop.device.cuda;

import io.zerohop.device.ZerohopException;
import io.zerohop.device.ZerohopException.Category;
import java.nio.ByteBuffer;
import java.util.HashMap;
import java.util.Map;
import jcuda.driver.CUcontext;
import jcuda.driver.CUdevice;
import jcuda.driver.CUdevice_attribute;
import jcuda.driver.CUuuid;
import jcuda.driver.JCudaDriver;
import org.jspecify.annotations.Nullable;

/**
 * The primary context of one GPU, the one that the CUDA runtime and so RAPIDS use, with our kernels
 * in it. One per GPU and process, kept for the life of the process: other libraries keep theirs,
 * and memory that peers read goes with it. Thread safe.
 */
final class CudaContext {
  private static final Map<Integer, CudaContext> CONTEXTS = new HashMap<>();

  private final int ordinal;
  private final CUdevice device = new CUdevice();
  private final CUcontext context = new CUcontext();
  private final String name;
  private final String uuid;
  private @Nullable Kernels kernels;
  private volatile boolean stuck;

  private CudaContext(final int ordinal) {
    this.ordinal = ordinal;
    final String where = "cuda:" + ordinal;
    CudaStatus.check(JCudaDriver.cuDeviceGet(device, ordinal), "cuDeviceGet", where);
    uuid = readUuid(device, where);
    name = where + " (" + uuid + ")";
    CudaStatus.check(
        JCudaDriver.cuDevicePrimaryCtxRetain(context, device), "cuDevicePrimaryCtxRetain", name);
  }

  /**
   * The context of a GPU.
   *
   * @param ordinal number of the GPU among those that this process sees
   * @throws ZerohopException (FALLBACK) if there is no such GPU
   */
  static CudaContext of(final int ordinal) {
    CudaDriver.require();
    if (ordinal < 0 || ordinal >= CudaDriver.devices()) {
      throw new ZerohopException(
          Category.FALLBACK,
          "GPU "
              + ordinal
              + " was requested, and this process sees "
              + CudaDriver.devices()
              + " GPUs");
    }
    synchronized (CONTEXTS) {
      return CONTEXTS.computeIfAbsent(ordinal, CudaContext::new);
    }
  }

  private static String readUuid(final CUdevice device, final String where) {
    final CUuuid id = new CUuuid();
    CudaStatus.check(JCudaDriver.cuDeviceGetUuid(id, device), "cuDeviceGetUuid", where);
    final ByteBuffer bytes = ByteBuffer.wrap(id.bytes);
    final long high = bytes.getLong();
    return "GPU-" + new java.util.UUID(high, bytes.getLong());
  }

  /** Makes the context current on this thread. Cheap; every call into the driver comes after it. */
  void enter() {
    CudaStatus.check(JCudaDriver.cuCtxSetCurrent(context), "cuCtxSetCurrent", name);
  }

  /** Says that work on this GPU does not end: what it may touch must stay as it is. */
  void markStuck() {
    stuck = true;
  }

  boolean isStuck() {
    return stuck;
  }

  /** Our kernels, loaded at the first call. */
  Kernels kernels() {
    synchronized (this) {
      if (kernels == null) {
        enter();
        kernels = Kernels.load(this);
      }
      return kernels;
    }
  }

  /** One of {@link CUdevice_attribute}; 0 if the driver does not know it. */
  int attribute(final int attribute) {
    final int[] value = new int[1];
    final int status = JCudaDriver.cuDeviceGetAttribute(value, attribute, device);
    return status == CudaStatus.SUCCESS ? value[0] : 0;
  }

  /** Major and minor compute capability, as 90 for 9.0. */
  int computeCapability() {
    return 10 * attribute(CUdevice_attribute.CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR)
        + attribute(CUdevice_attribute.CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
  }

  CUdevice handle() {
    return device;
  }

  int ordinal() {
    return ordinal;
  }

  /** Names the physical GPU the same way in every process. */
  String uuid() {
    return uuid;
  }

  @Override
  public String toString() {
    return name;
  }
}
