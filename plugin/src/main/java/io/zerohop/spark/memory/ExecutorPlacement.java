package io.zerohop.spark.memory;

import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.apache.spark.SparkConf;

/**
 * Who places executors, and how many of one kind can be on a machine with this one. An upper bound
 * where Spark's configuration has one, else an estimate: other applications are taken to ask for
 * what this one does.
 *
 * @param manager who places them
 * @param cores of one executor
 * @param executors most executors on this machine, at least 1
 */
record ExecutorPlacement(Manager manager, int cores, long executors) {
  /** Who gives memory to executors, and who ends them if they take more. */
  enum Manager {
    /** Tasks run in the driver. */
    LOCAL,
    /** Spark's own workers, {@code local-cluster} included: nobody ends an executor. */
    STANDALONE,
    /** A control group for each executor: a page counts for whoever wrote it first. */
    KUBERNETES,
    /** By resident set: pages that an executor has mapped from another count for both. */
    YARN
  }

  private static final String CORES = "spark.executor.cores";
  private static final Pattern LOCAL = Pattern.compile("local(?:\\[([0-9]+|\\*)(?:,.*)?\\])?");
  private static final Pattern LOCAL_CLUSTER =
      Pattern.compile("local-cluster\\[\\s*(\\d+)\\s*,\\s*(\\d+)\\s*,.*\\]");

  /** What the configuration and the machine say. */
  static ExecutorPlacement of(final SparkConf conf, final HostMemory host) {
    final String master = conf.get("spark.master", "local").trim();
    final Matcher local = LOCAL.matcher(master);
    final Matcher localCluster = LOCAL_CLUSTER.matcher(master);
    if (local.matches()) {
      return new ExecutorPlacement(Manager.LOCAL, threads(local.group(1), host), 1);
    } else if (localCluster.matches()) {
      final int ofWorker = Integer.parseInt(localCluster.group(2));
      final int cores = Math.min(ofWorker, conf.getInt(CORES, ofWorker));
      final long workers = Integer.parseInt(localCluster.group(1));
      return new ExecutorPlacement(Manager.STANDALONE, cores, workers * (ofWorker / cores));
    } else if (master.startsWith("k8s://")) {
      return new ExecutorPlacement(Manager.KUBERNETES, conf.getInt(CORES, 1), 1);
    } else if (master.startsWith("yarn")) {
      return new ExecutorPlacement(Manager.YARN, conf.getInt(CORES, 1), onNodeOfYarn(conf, host));
    }
    final int most = Math.min(host.processors(), conf.getInt("spark.cores.max", host.processors()));
    final int cores = conf.getInt(CORES, most);
    final long byCores = host.processors() / cores;
    final long byMemory = host.boundBytes() / host.heapBytes();
    return new ExecutorPlacement(
        Manager.STANDALONE, cores, Math.max(1, Math.min(byCores, byMemory)));
  }

  private static int threads(final String text, final HostMemory host) {
    if (text == null) {
      return 1;
    }
    return text.equals("*") ? host.processors() : Integer.parseInt(text);
  }

  /**
   * YARN goes by memory and need not look at cores; more than the application has are not there.
   */
  private static long onNodeOfYarn(final SparkConf conf, final HostMemory host) {
    final long container = MemoryPromises.containerBytes(conf, host.heapBytes());
    final long ofApplication =
        conf.getBoolean("spark.dynamicAllocation.enabled", false)
            ? conf.getInt("spark.dynamicAllocation.maxExecutors", Integer.MAX_VALUE)
            : conf.getInt("spark.executor.instances", 2);
    return Math.max(1, Math.min(ofApplication, host.boundBytes() / container));
  }

  /** Tasks that run at a time in one executor, at least 1. */
  long tasks(final SparkConf conf) {
    return Math.max(1, cores / Math.max(1, conf.getInt("spark.task.cpus", 1)));
  }

  /** Whether Spark asks for a container by {@code spark.executor.memoryOverhead}. */
  boolean hasContainers() {
    return manager == Manager.YARN || manager == Manager.KUBERNETES;
  }
}
