package io.zerohop.spark.keeper;

import org.apache.spark.storage.BlockManagerId;

/**
 * The executor id by which map statuses name outputs that a keeper holds. Spark keeps such outputs
 * registered when the executor is lost, since it knows no executor of this id.
 */
public final class KeptId {
  private static final String PREFIX = "keeper-";

  private KeptId() {}

  /** Returns the same place under the name for kept outputs. */
  public static BlockManagerId of(final BlockManagerId executor) {
    return BlockManagerId.apply(
        of(executor.executorId()), executor.host(), executor.port(), executor.topologyInfo());
  }

  /** Returns the name for kept outputs of an executor. */
  static String of(final String executorId) {
    return PREFIX + executorId;
  }

  /** Returns whether an executor id stands for kept outputs. */
  public static boolean isOne(final String executorId) {
    return executorId.startsWith(PREFIX);
  }

  /** Returns the executor behind an id; the id itself if it is an executor's. */
  public static String executorOf(final String executorId) {
    return isOne(executorId) ? executorId.substring(PREFIX.length()) : executorId;
  }
}
