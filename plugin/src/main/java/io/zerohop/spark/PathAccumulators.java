package io.zerohop.spark;

import io.zerohop.shuffle.Path;
import java.io.Serializable;
import java.util.EnumMap;
import java.util.Map;
import org.apache.spark.SparkContext;
import org.apache.spark.util.LongAccumulator;

/**
 * Named accumulators that tell on the Stages page which bytes of a shuffle went which way. Made on
 * the driver for every shuffle, since the page shows an accumulator's total and not a stage's share
 * of it; they travel in the shuffle's handle, so that tasks have them without any further message.
 * Updates of failed tasks do not count, as with Spark's own metrics.
 */
final class PathAccumulators implements Serializable {
  private static final long serialVersionUID = 1L;

  private final Map<Path, LongAccumulator> bytes = new EnumMap<>(Path.class);
  private final Map<Path, LongAccumulator> blocks = new EnumMap<>(Path.class);

  private PathAccumulators() {}

  static PathAccumulators register(final SparkContext context) {
    final PathAccumulators accumulators = new PathAccumulators();
    for (final Path path : Path.values()) {
      final String name = "zerohop." + path.label();
      accumulators.bytes.put(path, context.longAccumulator(name + ".bytes"));
      accumulators.blocks.put(path, context.longAccumulator(name + ".blocks"));
    }
    return accumulators;
  }

  /** Adds what one window brought. Called by the task's own thread. */
  void add(final Path path, final long blockCount, final long byteCount) {
    bytes.get(path).add(byteCount);
    blocks.get(path).add(blockCount);
  }
}
