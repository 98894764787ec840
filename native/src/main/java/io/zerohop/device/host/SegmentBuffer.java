package io.zerohop.device.host;

import io.zerohop.device.HostBuffer;
import io.zerohop.device.Segment;

/** A segment that is used by this process alone. */
record SegmentBuffer(Segment segment) implements HostBuffer {
  @Override
  public long address() {
    return segment.address();
  }

  @Override
  public long bytes() {
    return segment.bytes();
  }

  @Override
  public void close() {
    segment.close();
  }
}
