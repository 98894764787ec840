package io.zerohop.shuffle.transport.ucx;

import io.zerohop.shuffle.fetch.ExtentInputStream;
import io.zerohop.shuffle.fetch.ExtentList;
import io.zerohop.shuffle.transport.StagedTransport.StagedPayload;
import java.io.InputStream;

/** A block that has landed: its extents as its owner wrote them, in a slab that others share. */
final class LandedPayload implements StagedPayload {
  private final Slabs.Slab slab;
  private final ExtentList extents = new ExtentList();
  private long bytes;
  private volatile boolean released;

  /** Holds the slab from now on. */
  LandedPayload(
      final Slabs.Slab slab,
      final RemoteExtents remote,
      final LandingLayout layout,
      final int block) {
    this.slab = slab;
    slab.retain();
    for (int i = remote.begin(block); i < remote.end(block); i++) {
      extents.add(
          slab.address() + layout.place(i),
          remote.length(i),
          false,
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
    slab.release();
  }
}
