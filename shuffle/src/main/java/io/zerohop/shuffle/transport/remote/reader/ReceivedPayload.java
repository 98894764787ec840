package io.zerohop.shuffle.transport.remote.reader;

import io.zerohop.shuffle.block.Path;
import io.zerohop.shuffle.extent.ExtentInputStream;
import io.zerohop.shuffle.extent.ExtentList;
import io.zerohop.shuffle.transport.Transport.Payload;
import io.zerohop.shuffle.transport.remote.wire.RemoteExtents;
import java.io.InputStream;

/** A block that was received: its extents as its owner wrote them, in memory that others share. */
final class ReceivedPayload implements Payload {
  private final ReceiveBuffers buffers;
  private final ExtentList extents = new ExtentList();
  private boolean byFabric;
  private long bytes;
  private volatile boolean released;

  /** Holds the memory from now on. */
  ReceivedPayload(final ReceiveBuffers buffers, final RemoteExtents remote, final int block) {
    this.buffers = buffers;
    buffers.retain();
    for (int i = remote.begin(block); i < remote.end(block); i++) {
      extents.add(
          buffers.address(i),
          remote.length(i),
          buffers.isOnGpu(i),
          null,
          remote.isChecked(i),
          remote.checksum(i));
      bytes += remote.length(i);
      byFabric |= buffers.isOnGpu(i) && buffers.byFabric();
    }
  }

  @Override
  public long bytes() {
    return bytes;
  }

  @Override
  public Path path(final Path asked) {
    return byFabric ? Path.PEER : asked;
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
    buffers.release();
  }
}
