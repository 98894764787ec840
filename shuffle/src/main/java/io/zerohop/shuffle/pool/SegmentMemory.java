package io.zerohop.shuffle.pool;

import io.zerohop.device.Segment;
import org.agrona.concurrent.UnsafeBuffer;

/**
 * A segment under the id by which catalog entries name it, own or a peer's, with a buffer over all
 * of it. Thread safe as far as the memory is; whoever made it closes the segment.
 */
public final class SegmentMemory {
  private final long id;
  private final Segment segment;
  private final UnsafeBuffer buffer;

  public SegmentMemory(final long id, final Segment segment) {
    this.id = id;
    this.segment = segment;
    this.buffer = new UnsafeBuffer(segment.address(), Math.toIntExact(segment.bytes()));
  }

  /** The segment's id; never used for another one of the same owner. */
  public long id() {
    return id;
  }

  public Segment segment() {
    return segment;
  }

  /** The whole segment. */
  public UnsafeBuffer buffer() {
    return buffer;
  }

  public long address() {
    return segment.address();
  }

  public int bytes() {
    return buffer.capacity();
  }
}
