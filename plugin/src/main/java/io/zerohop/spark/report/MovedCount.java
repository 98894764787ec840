package io.zerohop.spark.report;

/** Blocks and their bytes while they are counted. Not thread safe. */
final class MovedCount {
  private long blocks;
  private long bytes;

  void add(final long moreBlocks, final long moreBytes) {
    blocks += moreBlocks;
    bytes += moreBytes;
  }

  void add(final MovedCount more) {
    add(more.blocks, more.bytes);
  }

  long blocks() {
    return blocks;
  }

  long bytes() {
    return bytes;
  }
}
