package io.zerohop.device.host;

import io.zerohop.device.HostBuffer;

/** Memory of this process that the host reaches anyway. */
record PinnedRange(long address, long bytes) implements HostBuffer {
  @Override
  public void close() {}
}
