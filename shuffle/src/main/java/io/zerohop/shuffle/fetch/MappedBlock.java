package io.zerohop.shuffle.fetch;

import io.zerohop.device.SignalEpoch;
import io.zerohop.shuffle.block.Block;
import io.zerohop.shuffle.block.BlockSource;
import io.zerohop.shuffle.block.Path;
import io.zerohop.shuffle.extent.ExtentInputStream;
import java.io.InputStream;

/** A block that is read where it lies. */
final class MappedBlock implements FetchedBlock {
  private final InPlaceWindow window;
  private final Block block;
  private final int from;
  private final int end;

  MappedBlock(final InPlaceWindow window, final Block block, final int from, final int end) {
    this.window = window;
    this.block = block;
    this.from = from;
    this.end = end;
  }

  @Override
  public Block block() {
    return block;
  }

  @Override
  public BlockSource source() {
    return window.source();
  }

  @Override
  public Path path() {
    return window.path();
  }

  @Override
  public long bytes() {
    long bytes = 0;
    for (int i = from; i < end; i++) {
      bytes += window.extents().length(i);
    }
    return bytes;
  }

  @Override
  public int extentCount() {
    return end - from;
  }

  @Override
  public long extentAddress(final int index) {
    return window.extents().address(from + checked(index));
  }

  @Override
  public int extentLength(final int index) {
    return window.extents().length(from + checked(index));
  }

  @Override
  public boolean extentOnDevice(final int index) {
    return window.extents().isDeviceOnly(from + checked(index));
  }

  @Override
  public boolean extentReachable(final int index) {
    return window.reachable(from + checked(index));
  }

  @Override
  public SignalEpoch ready() {
    return window.ready(block);
  }

  @Override
  public void awaitReady() {
    window.awaitReady(block);
  }

  private int checked(final int index) {
    return java.util.Objects.checkIndex(index, end - from);
  }

  @Override
  public InputStream stream() {
    return new ExtentInputStream(window.extents(), from, end, window::held);
  }

  @Override
  public String toString() {
    return block + " (" + path().label() + ")";
  }
}
