package io.zerohop.device.exchange;

import io.zerohop.device.SegmentHandle;

/** A handle without a descriptor, to be sent or received. Owns nothing; immutable. */
public final class OpaqueHandle implements SegmentHandle {
  private final Kind kind;
  private final long bytes;
  private final byte[] opaque;

  /**
   * @param kind any but {@link Kind#POSIX_FD}
   * @param opaque 64 bytes that must not be changed any more
   */
  public OpaqueHandle(final Kind kind, final long bytes, final byte[] opaque) {
    this.kind = kind;
    this.bytes = bytes;
    this.opaque = opaque;
  }

  @Override
  public Kind kind() {
    return kind;
  }

  @Override
  public long bytes() {
    return bytes;
  }

  @Override
  public int fd() {
    throw new IllegalStateException("a handle of kind " + kind + " has no descriptor");
  }

  @Override
  public byte[] opaque() {
    return opaque.clone();
  }

  @Override
  public void close() {
    // Nothing is owned.
  }
}
