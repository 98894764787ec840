package io.zerohop.device;

/**
 * Memory of this process that copies of a device can read and write, page-locked where that
 * matters. Zeroed when it is made. Owned by whoever asked for it; not thread safe.
 */
public interface HostBuffer extends AutoCloseable {

  /** Address of the first byte, for this process and for the device alike. */
  long address();

  /** Size in bytes, at least what was asked for. */
  long bytes();

  /**
   * Frees the memory; no copy may be under way. Idempotent. Where copies do not end ({@link
   * CopyStream#close} has said so) the memory is kept instead, until the process ends.
   */
  @Override
  void close();
}
