package io.zerohop.spark.staged;

/** Large blocks come by way of files, each in a request of its own, and small ones into memory. */
class LargeBlocksPathTest extends BlockTransferPathTest {
  @Override
  protected long largeBytes() {
    return 3_000;
  }
}
