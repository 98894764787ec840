package io.zerohop.device.cuda;

/**
 * The driver's virtual memory management. Every method but {@link #open} returns the driver's
 * status, and leaves what it found in {@code result[0]}. {@link CudaDriver} opens the library
 * before anything else is called; the calling thread has a current context.
 */
final class DriverMemory {
  /** {@code CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR}. */
  static final int POSIX_FD = 1;

  /** {@code CU_MEM_HANDLE_TYPE_FABRIC}. */
  static final int FABRIC = 8;

  private DriverMemory() {}

  /**
   * Loads the driver's library from a path or by its name; false if it is not there, or too old.
   */
  static native boolean open(String path);

  /** Sizes of allocations are multiples of this many bytes. */
  static native int granularity(int device, int handleTypes, long[] result);

  /** Physical memory of a device; {@code result} is its handle, which {@link #release} ends. */
  static native int create(int device, int handleTypes, boolean rdma, long bytes, long[] result);

  /** Drops a handle; memory goes when the last handle, descriptor and mapping are gone. */
  static native int release(long handle);

  /** {@code result} is a new file descriptor of the memory, the caller's. */
  static native int exportDescriptor(long handle, int handleType, long[] result);

  /** {@code result} is a handle to the descriptor's memory; the descriptor stays the caller's. */
  static native int importDescriptor(int fd, int handleType, long[] result);

  /** Writes the memory's fabric handle, of {@link FabricTrial#HANDLE_BYTES}. */
  static native int exportFabric(long handle, byte[] to);

  /** {@code result} is a handle to the memory of a fabric handle. */
  static native int importFabric(byte[] from, long[] result);

  /** {@code result} is an address at which the device may read and write all of the memory. */
  static native int map(int device, long handle, long bytes, long[] result);

  /** Orders what adapters wrote to the context's memory before its kernels that come after. */
  static native int flushAdapterWrites();

  /** Ends a mapping made by {@link #map}. */
  static native int unmap(long address, long bytes);
}
