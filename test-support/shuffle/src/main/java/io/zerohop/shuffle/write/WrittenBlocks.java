package io.zerohop.shuffle.write;

import io.zerohop.shuffle.extent.ExtentList.ExtentConsumer;

/** What a map output has in memory while it is written, as it goes into a file. */
public final class WrittenBlocks {
  private WrittenBlocks() {}

  public static void forEachExtent(
      final MapOutput output, final int partition, final ExtentConsumer consumer) {
    output.forEachExtent(partition, consumer);
  }
}
