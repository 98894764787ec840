package io.zerohop.device.exchange;

import io.zerohop.device.SegmentHandle;

/** A received handle without a descriptor. Immutable. */
final class OpaqueHandle implements SegmentHandle {
  private final Kind kind;
  private final long bytes;
  private final byte[] opaque;

  OpaqueHandle(final Kind kind, final long bytes, final byte[] opaque) {
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
