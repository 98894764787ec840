package io.zerohop.device.cuda;

import io.zerohop.device.posix.NativeLibrary;
import java.util.List;

/** NVML's view of the GPUs of this machine, those that CUDA_VISIBLE_DEVICES hides included. */
final class Nvml {
  /** The other end of a link is a GPU. */
  static final int GPU = 0;

  /** The other end of a link is an NVSwitch. */
  static final int SWITCH = 2;

  /** No active link. */
  static final int NONE = -1;

  private static final List<String> LIBRARIES =
      List.of(
          "libnvidia-ml.so.1",
          "/usr/local/nvidia/lib64/libnvidia-ml.so.1",
          "/usr/lib/x86_64-linux-gnu/libnvidia-ml.so.1",
          "/usr/lib/aarch64-linux-gnu/libnvidia-ml.so.1",
          "/usr/lib64/libnvidia-ml.so.1",
          "/usr/lib/wsl/lib/libnvidia-ml.so.1");

  private static Boolean present;

  private Nvml() {}

  /**
   * Whether the library is there; loads it once. Before it was true, nothing else may be called.
   */
  static synchronized boolean present() {
    if (present == null) {
      NativeLibrary.require();
      present = LIBRARIES.stream().anyMatch(Nvml::open);
    }
    return present;
  }

  private static native boolean open(String path);

  static native int count();

  /** Null if the GPU does not answer, as for the other texts. */
  static native String uuid(int device);

  static native String busId(int device);

  /** {@link #GPU}, {@link #SWITCH}, another of NVML's device types, or {@link #NONE}. */
  static native int linkType(int device, int link);

  static native String linkBusId(int device, int link);

  /** 0 if the first GPU can read the memory of the second. */
  static native int peerStatus(int from, int to);

  static native String fabric(int device);
}
