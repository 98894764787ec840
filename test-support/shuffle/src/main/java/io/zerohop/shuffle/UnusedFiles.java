package io.zerohop.shuffle;

import io.zerohop.shuffle.write.MapOutput.HostBlocks;
import io.zerohop.shuffle.write.MapOutput.OverflowFiles;

/**
 * Files that read what they are to write, and write nothing.
 *
 * @param deletable whether they can be closed
 */
record UnusedFiles(boolean deletable) implements OverflowFiles {
  @Override
  public void spill(final HostBlocks batch) {
    batch.forEachExtent(0, (address, length) -> {});
  }

  @Override
  public long[] write(final HostBlocks first, final HostBlocks last) {
    spill(first);
    spill(last);
    return new long[1];
  }

  @Override
  public long spilledBytes() {
    return 0;
  }

  @Override
  public void close() {
    if (!deletable) {
      throw new IllegalStateException("cannot be deleted");
    }
  }
}
