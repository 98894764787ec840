package io.zerohop.spark.keeper;

import java.util.Locale;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.apache.spark.storage.BlockManagerId;

/**
 * The executor id by which map statuses name outputs that a keeper holds. Spark keeps such outputs
 * registered when the executor is lost, since it knows no executor of this id.
 */
public final class KeptId {
  private static final Pattern KEPT = Pattern.compile("keeper-(.+)-[0-9a-f]{16}");

  private KeptId() {}

  /** Returns the same place under the name for kept outputs. */
  public static BlockManagerId of(final BlockManagerId executor, final long incarnation) {
    return BlockManagerId.apply(
        String.format(Locale.ROOT, "keeper-%s-%016x", executor.executorId(), incarnation),
        executor.host(),
        executor.port(),
        executor.topologyInfo());
  }

  /** Returns whether an executor id stands for kept outputs. */
  public static boolean isOne(final String executorId) {
    return KEPT.matcher(executorId).matches();
  }

  /** Returns the executor behind an id; the id itself if it is an executor's. */
  public static String executorOf(final String executorId) {
    final Matcher matcher = KEPT.matcher(executorId);
    return matcher.matches() ? matcher.group(1) : executorId;
  }
}
