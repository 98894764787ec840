package io.zerohop.device.cuda;

import io.zerohop.device.SegmentHandle;

/** A legacy IPC handle on its way to a peer. Owns nothing; immutable. */
final class OpaqueIpcHandle implements SegmentHandle {
  /** {@code CU_IPC_HANDLE_SIZE}. */
  static final int BYTES = 64;

  private final long bytes;
  private final byte[] handle;

  OpaqueIpcHandle(final long bytes, final byte[] handle) {
    this.bytes = bytes;
    this.handle = handle.clone();
  }

  @Override
  public Kind kind() {
    return Kind.CUDA_IPC;
  }

  @Override
  public long bytes() {
    return bytes;
  }

  @Override
  public int fd() {
    throw new IllegalStateException("an IPC handle has no descriptor");
  }

  @Override
  public byte[] opaque() {
    return handle.clone();
  }

  @Override
  public void close() {
    // The exporter's allocation holds the memory.
  }
}
