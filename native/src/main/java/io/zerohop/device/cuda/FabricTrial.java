package io.zerohop.device.cuda;

import io.zerohop.device.Device.FabricReach;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/**
 * Finds out whether memory can be handed to other nodes of an NVLink fabric. The driver's attribute
 * says only that the GPU could; whether the process has an IMEX channel shows when a handle is
 * made, so one is, of a small allocation, and taken back in.
 */
final class FabricTrial {
  /** Size of {@code CUmemFabricHandle}. */
  static final int HANDLE_BYTES = 64;

  private FabricTrial() {}

  /** The driver's calls for the trial, each with its status; tests make up drivers. */
  interface Calls {
    /** {@code result} is a handle of a small allocation with both kinds of handle. */
    int create(long[] result);

    int exportFabric(long handle, byte[] to);

    int importFabric(byte[] from, long[] result);

    int release(long handle);
  }

  /**
   * Tries it.
   *
   * @param clique asked only if handles work; an empty one if NVML names none
   */
  static FabricReach of(final Calls calls, final Supplier<String> clique) {
    final long[] made = new long[1];
    final int status = calls.create(made);
    if (status != CudaStatus.SUCCESS) {
      return refused("cuMemCreate", status);
    }
    try {
      final String failure = roundTrip(calls, made[0]);
      if (failure != null) {
        return FabricReach.none(failure);
      }
    } finally {
      calls.release(made[0]);
    }
    final String name = clique.get();
    return name.isEmpty()
        ? FabricReach.none("NVML names no cluster that this GPU has joined")
        : new FabricReach(name, "");
  }

  /** Returns why a handle does not work, if it does not. */
  private static @Nullable String roundTrip(final Calls calls, final long handle) {
    final byte[] bytes = new byte[HANDLE_BYTES];
    int status = calls.exportFabric(handle, bytes);
    if (status != CudaStatus.SUCCESS) {
      return refused("cuMemExportToShareableHandle", status).absence();
    }
    final long[] imported = new long[1];
    status = calls.importFabric(bytes, imported);
    if (status != CudaStatus.SUCCESS) {
      return refused("cuMemImportFromShareableHandle", status).absence();
    }
    calls.release(imported[0]);
    return null;
  }

  private static FabricReach refused(final String call, final int status) {
    return FabricReach.none(
        call
            + " with a fabric handle reported "
            + CudaStatus.name(status)
            + "; it needs a GPU of a multi-node NVLink fabric, the service nvidia-imex, and an IMEX"
            + " channel that this process may open (/dev/nvidia-caps-imex-channels/channel0)");
  }

  /** The driver itself; the calling thread has the device's context. */
  static Calls driver(final int device, final boolean rdma, final long bytes) {
    return new Calls() {
      @Override
      public int create(final long[] result) {
        return DriverMemory.create(
            device, DriverMemory.POSIX_FD | DriverMemory.FABRIC, rdma, bytes, result);
      }

      @Override
      public int exportFabric(final long handle, final byte[] to) {
        return DriverMemory.exportFabric(handle, to);
      }

      @Override
      public int importFabric(final byte[] from, final long[] result) {
        return DriverMemory.importFabric(from, result);
      }

      @Override
      public int release(final long handle) {
        return DriverMemory.release(handle);
      }
    };
  }
}
