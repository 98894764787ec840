package io.zerohop.workload;

import java.nio.file.Path;
import java.util.HashMap;
import java.util.Locale;
import java.util.Map;

/**
 * The cluster that every contender gets.
 *
 * @param executors how many executor JVMs
 * @param coresPerExecutor tasks at a time in each
 * @param executorMemoryMib the heap of each
 * @param localDir where Spark puts shuffle files and spills
 * @param extraConf settings that win over all others
 */
public record ClusterShape(
    int executors,
    int coresPerExecutor,
    int executorMemoryMib,
    Path localDir,
    Map<String, String> extraConf) {

  /** Copies the settings. */
  public ClusterShape {
    extraConf = Map.copyOf(extraConf);
  }

  /** The master URL: a real standalone cluster, workers and executors as processes. */
  String master() {
    return String.format(
        Locale.ROOT, "local-cluster[%d,%d,%d]", executors, coresPerExecutor, executorMemoryMib);
  }

  /** What any application here needs. */
  Map<String, String> commonConf(final Path run) {
    return Map.of(
        "spark.ui.enabled",
        "false",
        "spark.ui.showConsoleProgress",
        "false",
        "spark.local.dir",
        localDir.toString(),
        "spark.sql.warehouse.dir",
        run.resolve("warehouse").toString());
  }

  /** What a contender's application needs; all else is as Spark has it by default. */
  Map<String, String> clusterConf(final Path run) {
    final Map<String, String> conf = new HashMap<>(commonConf(run));
    conf.put("spark.executor.memory", executorMemoryMib + "m");
    conf.put("spark.executor.cores", Integer.toString(coresPerExecutor));
    // No job before all executors are there, so that all runs are spread alike.
    conf.put("spark.scheduler.minRegisteredResourcesRatio", "1.0");
    conf.put("spark.scheduler.maxRegisteredResourcesWaitingTime", "60s");
    return conf;
  }

  /**
   * Settings under which a small TPC-H shuffles as much as a big one.
   *
   * @param partitions {@code spark.sql.shuffle.partitions}
   * @param extra settings that win over these
   */
  public static Map<String, String> allShuffled(
      final int partitions, final Map<String, String> extra) {
    final Map<String, String> conf = new HashMap<>();
    conf.put("spark.sql.shuffle.partitions", Integer.toString(partitions));
    // TPC-H's small tables would be broadcast; this is about shuffles, so they are shuffled too.
    conf.put("spark.sql.autoBroadcastJoinThreshold", "-1");
    // More map tasks than cores, as on data of a real size.
    conf.put("spark.sql.files.maxPartitionBytes", "16m");
    conf.putAll(extra);
    return conf;
  }
}
