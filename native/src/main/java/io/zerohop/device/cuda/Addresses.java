package io.zerohop.device.cuda;

import jcuda.Pointer;
import jcuda.driver.CUdeviceptr;

/** Addresses as numbers, which is what the rest of Zerohop uses, and as JCuda wants them. */
final class Addresses {
  private static final CUdeviceptr DEVICE_ZERO = new CUdeviceptr();
  private static final Pointer HOST_ZERO = new HostPointer();

  private Addresses() {}

  static CUdeviceptr device(final long address) {
    return DEVICE_ZERO.withByteOffset(address);
  }

  static Pointer host(final long address) {
    return HOST_ZERO.withByteOffset(address);
  }

  /** A place for JCuda to leave an address in. */
  static final class Result extends CUdeviceptr {
    long value() {
      return getNativePointer() + getByteOffset();
    }
  }

  /** An address of host memory in a form that JCuda takes for registered memory, too. */
  static Pointer hostRange(final long address) {
    return new HostPointer(address);
  }

  /** A buffer of host memory, or a null pointer to start from. */
  static final class HostPointer extends Pointer {
    HostPointer() {}

    HostPointer(final long address) {
      super(address);
    }

    long value() {
      return getNativePointer() + getByteOffset();
    }
  }
}
