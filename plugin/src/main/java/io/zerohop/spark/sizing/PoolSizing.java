package io.zerohop.spark.sizing;

import io.zerohop.device.Message;
import io.zerohop.device.cuda.CudaDriver;
import io.zerohop.device.host.AvailableMemory;
import io.zerohop.shuffle.conf.Config;
import io.zerohop.spark.conf.RapidsKeys;
import io.zerohop.spark.conf.ZerohopConf;
import io.zerohop.spark.log.SparkCode;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Set;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import org.apache.spark.SparkConf;
import org.jspecify.annotations.Nullable;

/**
 * Computes the memory for shuffle blocks in an executor if the user did not set it; docs/memory.md
 * has the table ("How large the pools are"). On the host it is what the bound that applies to this
 * executor leaves after all that is promised to others. Segments are allocated only when blocks
 * need them, so this is a bound and not a reservation.
 */
public final class PoolSizing {
  private static final long MIB = 1L << 20;

  /** Below this a start-up warning tells the user how to get more. */
  static final long SMALL_BYTES = 512 * MIB;

  /**
   * The pool is never smaller than this, so that there is room for catalogs at least. Where no room
   * is left at all, it comes out of what is set aside for the JVM, which is six times as much.
   */
  static final long MIN_BYTES = 64 * MIB;

  /** What is left to the system of a machine without a limit, as Spark's own workers do. */
  static final long SYSTEM_BYTES = 1024 * MIB;

  private static final int SHARE_OF_FREE = 4;
  private static final int GPU_SHARE = 5;
  private static final long UNKNOWN_GPU_POOL_BYTES = 4096 * MIB;

  private final SparkConf conf;
  private final HostMemory host;
  private final ExecutorPlacement placement;
  private final MemoryPromises promises;
  private final long boundBytes;
  private final long roomBytes;

  /** The default of an executor with this configuration on this machine. */
  PoolSizing(final SparkConf conf, final HostMemory host) {
    this.conf = conf;
    this.host = host;
    this.placement = ExecutorPlacement.of(conf, host);
    this.promises = MemoryPromises.of(conf, host.heapBytes(), placement.tasks(conf));
    this.boundBytes = bound();
    this.roomBytes = room();
  }

  /**
   * The size of an executor's pool in host memory.
   *
   * @param bytes its size
   * @param isSet whether the user has set it
   * @param warning of a default that is small, or of a set size that is more than there is
   */
  public record Plan(long bytes, boolean isSet, @Nullable Message warning) {}

  /**
   * Returns the plan of an executor on this machine.
   *
   * @param heapBytes most heap of that executor's JVM
   */
  public static Plan plan(final SparkConf conf, final long heapBytes) {
    final long set = ZerohopConf.of(conf).pool().size();
    final PoolSizing sizing = new PoolSizing(conf, HostMemory.here().withHeap(heapBytes));
    return set > 0
        ? new Plan(set, true, sizing.excess(set))
        : new Plan(sizing.bytes(), false, sizing.shortage());
  }

  /** Most shared memory that this executor may hold, in bytes. */
  long bytes() {
    return Math.max(MIN_BYTES, roomBytes);
  }

  /** What one executor may hold in all: its container, or its part of what executors share. */
  private long bound() {
    final long container = MemoryPromises.containerBytes(conf, host.heapBytes());
    return switch (placement.manager()) {
      case YARN -> Math.min(container, host.boundBytes());
      case KUBERNETES -> host.isLimited() ? host.limitBytes() : container;
      case LOCAL, STANDALONE ->
          (host.isLimited() ? host.limitBytes() : host.totalBytes() - SYSTEM_BYTES)
              / placement.executors();
    };
  }

  /** Returns the rest for the pool, in bytes; negative if more is promised than there is. */
  private long room() {
    final long left = boundBytes - promises.total();
    return switch (placement.manager()) {
      case KUBERNETES -> left;
      // Executors read each other's pools in place, and YARN counts that for each of them.
      case YARN -> Math.floorDiv(left, placement.executors());
      case LOCAL, STANDALONE -> host.isLimited() ? left : Math.min(left, shareOfFree());
    };
  }

  /** Others want memory of the machine too: the page cache, other programs, other executors. */
  private long shareOfFree() {
    return host.availableBytes() / Math.max(SHARE_OF_FREE, placement.executors());
  }

  /** Warns of a small pool; null if it is not. */
  @Nullable Message shortage() {
    if (bytes() >= SMALL_BYTES) {
      return null;
    }
    return SparkCode.POOL_SMALL
        .says(
            "only "
                + bytes() / MIB
                + " MiB of shared memory for shuffle blocks; what does not fit goes to files")
        .because(promised() + "; " + host.availableBytes() / MIB + " MiB are free now")
        .remedy(
            "for a pool of "
                + SMALL_BYTES / MIB
                + " MiB "
                + remedy(SMALL_BYTES)
                + ", or set spark.zerohop.pool.size="
                + SMALL_BYTES / MIB
                + "m if that memory is free (executors that exceed their limit are killed)");
  }

  /**
   * Warns of a size that was set and gets an executor killed; null if it does not, or nobody
   * watches.
   */
  @Nullable Message excess(final long setBytes) {
    final boolean isWatched = host.isLimited() || placement.hasContainers();
    if (!isWatched || setBytes <= roomBytes) {
      return null;
    }
    return SparkCode.POOL_TOO_LARGE
        .says(
            "spark.zerohop.pool.size"
                + " is "
                + setBytes / MIB
                + " MiB, and "
                + Math.max(0, roomBytes) / MIB
                + " MiB are left for it; an executor that fills the pool may be killed")
        .because(promised())
        .remedy("to leave as much " + remedy(setBytes));
  }

  private String promised() {
    final String whose =
        switch (placement.manager()) {
          case YARN, KUBERNETES -> "the container has";
          case LOCAL -> "this process may hold";
          case STANDALONE -> "each of up to " + placement.executors() + " executors may hold";
        };
    return whose
        + " "
        + boundBytes / MIB
        + " MiB here, of which are promised, in MiB: "
        + promises.inWords();
  }

  private String remedy(final long wantedBytes) {
    final long missing = wantedBytes - roomBytes;
    final long overhead = MemoryPromises.overheadBytes(conf, host.heapBytes());
    return switch (placement.manager()) {
      case YARN ->
          "set spark.executor.memoryOverhead="
              + roundUp(overhead + missing * placement.executors())
              + "m (executors of a node read each other's pools, which YARN counts for each of up"
              + " to "
              + placement.executors()
              + ")";
      case KUBERNETES -> "set spark.executor.memoryOverhead=" + roundUp(overhead + missing) + "m";
      case LOCAL, STANDALONE ->
          host.isLimited()
              ? "raise the limit of its control group to "
                  + roundUp(host.limitBytes() + missing * placement.executors())
                  + " MiB"
              : "lower spark."
                  + (placement.manager() == ExecutorPlacement.Manager.LOCAL ? "driver" : "executor")
                  + ".memory, or end what else takes memory of the machine";
    };
  }

  private static long roundUp(final long bytes) {
    return (bytes + MIB - 1) / MIB;
  }

  /** Returns whether somebody has decided on the size of the pool in GPU memory. */
  public static boolean isDevicePoolSet(final SparkConf conf) {
    return ZerohopConf.of(conf).device().poolSize() > 0;
  }

  /** Most bytes of GPU memory: what was decided, or the default of this machine. */
  public static long devicePoolBytes(final SparkConf conf) {
    final long set = ZerohopConf.of(conf).device().poolSize();
    return set > 0 ? set : devicePoolBytes(CudaDriver.leastMemory());
  }

  /**
   * The default for a GPU.
   *
   * @param gpuBytes memory of the smallest GPU that a process may use; 0 if it sees none
   */
  public static long devicePoolBytes(final long gpuBytes) {
    return gpuBytes == 0 ? UNKNOWN_GPU_POOL_BYTES : gpuBytes / GPU_SHARE / MIB * MIB;
  }

  /**
   * The cluster manager, and the number of such executors on this machine. An upper bound where
   * Spark's configuration has one, else an estimate: other applications are taken to ask for what
   * this one does.
   *
   * @param manager who places them
   * @param cores of one executor
   * @param executors most executors on this machine, at least 1
   */
  private record ExecutorPlacement(Manager manager, int cores, long executors) {
    /** The cluster manager, which gives memory to executors and may end those that take more. */
    enum Manager {
      /** Tasks run in the driver. */
      LOCAL,
      /** Spark's own workers, {@code local-cluster} included: nobody ends an executor. */
      STANDALONE,
      /** A control group for each executor: a page counts for the process that wrote it first. */
      KUBERNETES,
      /** By resident set: pages that an executor has mapped from another count for both. */
      YARN
    }

    private static final String CORES = "spark.executor.cores";
    private static final Pattern LOCAL = Pattern.compile("local(?:\\[([0-9]+|\\*)(?:,.*)?\\])?");
    private static final Pattern LOCAL_CLUSTER =
        Pattern.compile("local-cluster\\[\\s*(\\d+)\\s*,\\s*(\\d+)\\s*,.*\\]");

    /** Returns the placement by configuration and machine. */
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
      final int most =
          Math.min(host.processors(), conf.getInt("spark.cores.max", host.processors()));
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

    /** Returns the concurrent tasks of one executor, at least 1. */
    long tasks(final SparkConf conf) {
      return Math.max(1, cores / Math.max(1, conf.getInt("spark.task.cpus", 1)));
    }

    /** Returns whether Spark asks for a container by {@code spark.executor.memoryOverhead}. */
    boolean hasContainers() {
      return manager == Manager.YARN || manager == Manager.KUBERNETES;
    }
  }

  /**
   * The bounds of an executor's memory on its own machine, in bytes, as read when it starts.
   *
   * @param totalBytes the machine's memory
   * @param availableBytes what could be taken now
   * @param limitBytes tightest limit of the control groups of this process and above it; {@link
   *     Long#MAX_VALUE} if there is none
   * @param heapBytes most heap of this JVM
   * @param processors cores that this process may run on
   */
  record HostMemory(
      long totalBytes, long availableBytes, long limitBytes, long heapBytes, int processors) {

    /** This machine, now. */
    static HostMemory here() {
      final Runtime runtime = Runtime.getRuntime();
      final long total = AvailableMemory.machineTotalBytes();
      return new HostMemory(
          total == Long.MAX_VALUE ? runtime.maxMemory() : total, // Not known: rather too little.
          AvailableMemory.bytes(),
          AvailableMemory.limitBytes(),
          runtime.maxMemory(),
          runtime.availableProcessors());
    }

    /** The same for a JVM with another heap. */
    HostMemory withHeap(final long bytes) {
      return new HostMemory(totalBytes, availableBytes, limitBytes, bytes, processors);
    }

    /** Whether a control group leaves less than the machine has. */
    boolean isLimited() {
      return limitBytes < totalBytes;
    }

    /** What all processes under the tightest bound may hold together. */
    long boundBytes() {
      return Math.min(totalBytes, limitBytes);
    }
  }

  /**
   * Host memory of one executor, in bytes, that is not the pool's to take: what Spark's, RAPIDS'
   * and our own configuration promises to others. What a task uses without a setting of its own
   * (code, threads, small buffers) is in {@code jvm}, by the rule that Spark sizes containers by.
   *
   * @param heap the JVM's heap
   * @param jvm what the JVM needs beside it: a tenth of the heap, at least 384 MiB
   * @param offHeap Spark's execution and storage memory outside the heap
   * @param python Python's workers
   * @param rapids RAPIDS' pinned pool, or the limit of its host memory
   * @param arenas write buffers of all tasks that run at a time
   * @param receiveBuffers what readers may reserve for blocks that cannot be read in place
   * @param keeper the JVM of the keeper, which each executor may have started
   */
  record MemoryPromises(
      long heap,
      long jvm,
      long offHeap,
      long python,
      long rapids,
      long arenas,
      long receiveBuffers,
      long keeper) {
    static final long MIB = 1L << 20;
    private static final long MIN_JVM_BYTES = 384 * MIB;

    /** The sum of the limits that {@code KeeperStart} sets, and some for its threads. */
    private static final long KEEPER_JVM_BYTES = 256 * MIB;

    /** What Kubernetes' factor for Python (0.4) grants over the one for JVMs (0.1), of the heap. */
    private static final double PYTHON_SHARE = 0.3;

    private static final String RAPIDS_LIMIT = "spark.rapids.memory.host.offHeapLimit.";

    /** What RAPIDS gives itself at least where its limit is on and has no size. */
    private static final String MIN_RAPIDS_LIMIT = "4g";

    /**
     * What a configuration promises.
     *
     * @param heap most heap of this JVM
     * @param tasks tasks that run at a time
     */
    static MemoryPromises of(final SparkConf conf, final long heap, final long tasks) {
      final Config own = ZerohopConf.of(conf);
      return new MemoryPromises(
          heap,
          Math.max(MIN_JVM_BYTES, heap / 10),
          offHeapBytes(conf),
          pythonBytes(conf, heap),
          rapidsBytes(conf),
          own.writeBuffer() * tasks,
          own.fetch().receiveBuffers(),
          own.keeper().enabled() ? KEEPER_JVM_BYTES : 0);
    }

    private static long offHeapBytes(final SparkConf conf) {
      return conf.getBoolean("spark.memory.offHeap.enabled", false)
          ? conf.getSizeAsBytes("spark.memory.offHeap.size", "0")
          : 0;
    }

    private static long pythonBytes(final SparkConf conf, final long heap) {
      final long set = requestedPythonBytes(conf);
      if (set > 0) {
        return set;
      }
      final boolean isPython =
          conf.getBoolean("spark.yarn.isPython", false)
              || conf.get("spark.kubernetes.resource.type", "").equals("python");
      return isPython ? (long) (heap * PYTHON_SHARE) : 0;
    }

    private static long requestedPythonBytes(final SparkConf conf) {
      return conf.getSizeAsMb("spark.executor.pyspark.memory", "0") * MIB;
    }

    private static long rapidsBytes(final SparkConf conf) {
      final String pinnedKey = RapidsKeys.inForce(conf, "spark.rapids.memory.pinnedPool.size");
      final long pinned = conf.getSizeAsBytes(pinnedKey, "0");
      final String limitKey = RapidsKeys.inForce(conf, RAPIDS_LIMIT + "size");
      return conf.getBoolean(RapidsKeys.inForce(conf, RAPIDS_LIMIT + "enabled"), false)
          ? Math.max(pinned, conf.getSizeAsBytes(limitKey, MIN_RAPIDS_LIMIT))
          : pinned;
    }

    /**
     * The memory overhead that Spark asks of a cluster manager for an executor with this heap,
     * which may be a resource profile's and not {@code spark.executor.memory}.
     */
    static long overheadBytes(final SparkConf conf, final long heap) {
      final long set = conf.getSizeAsMb("spark.executor.memoryOverhead", "0") * MIB;
      if (set > 0) {
        return set;
      }
      final double factor =
          conf.getDouble(
              "spark.executor.memoryOverheadFactor",
              conf.getDouble("spark.kubernetes.memoryOverheadFactor", 0.1));
      final long least = conf.getSizeAsMb("spark.executor.minMemoryOverhead", "384m") * MIB;
      return Math.max(least, (long) (heap * factor));
    }

    /** The container that Spark asks of YARN or Kubernetes for an executor with this heap. */
    static long containerBytes(final SparkConf conf, final long heap) {
      return heap + overheadBytes(conf, heap) + offHeapBytes(conf) + requestedPythonBytes(conf);
    }

    /** All of it. */
    long total() {
      return heap + jvm + offHeap + python + rapids + arenas + receiveBuffers + keeper;
    }

    /** What there is of it, for messages. */
    String inWords() {
      final Map<String, Long> parts = new LinkedHashMap<>();
      parts.put("heap", heap);
      parts.put("JVM overhead", jvm);
      parts.put("off-heap", offHeap);
      parts.put("Python", python);
      parts.put("RAPIDS", rapids);
      parts.put("spark.zerohop.write.buffer of all tasks", arenas);
      parts.put("spark.zerohop.fetch.receiveBuffers", receiveBuffers);
      parts.put("the keeper", keeper);
      final Set<Map.Entry<String, Long>> entries = parts.entrySet();
      return entries.stream()
          .filter(part -> part.getValue() > 0)
          .map(part -> part.getKey() + " " + part.getValue() / MIB)
          .collect(Collectors.joining(", "));
    }
  }
}
