package io.zerohop.spark.executor;

import io.zerohop.shuffle.NodeStats;
import io.zerohop.shuffle.ShuffleNode;
import io.zerohop.spark.report.ShuffleReport.Memory;
import io.zerohop.spark.spillfiles.MapOutputFiles;

/** Where an executor's map outputs lie, for its reports. */
final class MemoryReport {
  private MemoryReport() {}

  /**
   * As things are now.
   *
   * @param node holds blocks in memory; null if none does
   * @param files holds the others
   */
  static Memory of(final ShuffleNode node, final MapOutputFiles files) {
    if (node == null) {
      return new Memory(0, 0, 0, 0, files.bytes(), 0, 0, 0);
    }
    final NodeStats stats = node.stats();
    final boolean gpu = stats.device() != null;
    return new Memory(
        stats.host().usedBytes(),
        stats.host().limitBytes(),
        gpu ? stats.device().usedBytes() : 0,
        gpu ? stats.device().limitBytes() : 0,
        files.bytes(),
        stats.evictions().overflowedBytes(),
        stats.evictions().toHost().bytes(),
        stats.evictions().toFiles().bytes());
  }
}
