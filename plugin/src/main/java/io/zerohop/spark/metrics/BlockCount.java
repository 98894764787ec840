package io.zerohop.spark.metrics;

import io.zerohop.shuffle.block.Block;
import java.util.List;
import org.agrona.collections.LongHashSet;

/**
 * Counts the blocks of one reader as Spark's metrics do. Where Spark fetches in batches, all that a
 * reader gets of one map output is one block of a range of partitions; the tests of adaptive
 * execution and the users' dashboards go by that number. Used by the task's own thread.
 */
final class BlockCount {
  private final boolean batches;
  private final LongHashSet mapOutputs = new LongHashSet();
  private long last;

  /**
   * A count that begins at 0.
   *
   * @param batches whether Spark would fetch in batches
   */
  BlockCount(final boolean batches) {
    this.batches = batches;
  }

  /** Returns the number that these blocks add to the count. */
  long add(final List<Block> blocks) {
    if (!batches) {
      return blocks.size();
    }
    long added = 0;
    for (final Block block : blocks) {
      // Neighbours mostly are of one map output, so the set is seldom asked.
      if (mapOutputs.isEmpty() || block.mapId() != last) {
        last = block.mapId();
        added += mapOutputs.add(last) ? 1 : 0;
      }
    }
    return added;
  }
}
