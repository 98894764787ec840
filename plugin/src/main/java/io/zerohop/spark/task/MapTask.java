package io.zerohop.spark.task;

import java.util.function.Supplier;
import org.apache.spark.TaskContext;
import org.apache.spark.shuffle.ShuffleWriteMetricsReporter;
import org.apache.spark.storage.BlockManagerId;

/**
 * The map task that writes a map output.
 *
 * @param mapId names the output: the attempt of the task
 * @param metrics Spark's, of what is written
 * @param locator says what goes into the map status, once the output is committed
 */
public record MapTask(
    long mapId,
    TaskContext context,
    ShuffleWriteMetricsReporter metrics,
    Supplier<BlockManagerId> locator) {

  /** Returns what goes into the map status. May wait for a keeper, for a moment. */
  public BlockManagerId location() {
    return locator.get();
  }
}
