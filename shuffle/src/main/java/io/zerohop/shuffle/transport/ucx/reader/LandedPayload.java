package io.zerohop.shuffle.transport.ucx.reader;

import io.zerohop.shuffle.extent.ExtentInputStream;
import io.zerohop.shuffle.extent.ExtentList;
import io.zerohop.shuffle.transport.Transport.Payload;
import io.zerohop.shuffle.transport.ucx.wire.RemoteExtents;
import java.io.InputStream;

/** A block that has landed: its extents as its owner wrote them, in memory that others share. */
final class LandedPayload implements Payload {
  private final Landing landing;
  private final ExtentList extents = new ExtentList();
  private long bytes;
  private volatile boolean released;

  /** Holds the memory from now on. */
  LandedPayload(final Landing landing, final RemoteExtents remote, final int block) {
    this.landing = landing;
    landing.retain();
    for (int i = remote.begin(block); i < remote.end(block); i++) {
      extents.add(
          landing.address(i),
          remote.length(i),
          landing.isOnGpu(i),
          null,
          remote.isChecked(i),
          remote.checksum(i));
      bytes += remote.length(i);
    }
  }

  @Override
  public long bytes() {
    return bytes;
  }

  @Override
  public ExtentList extents() {
    return extents;
  }

  @Override
  public InputStream open() {
    return new ExtentInputStream(extents, 0, extents.size(), () -> !released);
  }

  @Override
  public void release() {
    released = true;
    landing.release();
  }
}
