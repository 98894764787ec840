package io.zerohop.spark.memory;

import io.zerohop.spark.conf.RapidsKeys;
import io.zerohop.spark.conf.ZerohopConf;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Set;
import java.util.stream.Collectors;
import org.apache.spark.SparkConf;

/**
 * Host memory of one executor, in bytes, that is not the pool's to take: what Spark's, RAPIDS' and
 * our own configuration promises to others. What a task uses without a setting of its own (code,
 * threads, small buffers) is in {@code jvm}, by the rule that Spark sizes containers by.
 *
 * @param heap the JVM's heap
 * @param jvm what the JVM needs beside it: a tenth of the heap, at least 384 MiB
 * @param offHeap Spark's execution and storage memory outside the heap
 * @param python Python's workers
 * @param rapids RAPIDS' pinned pool, or the limit of its host memory
 * @param arenas write buffers of all tasks that run at a time
 * @param receiveBuffers what readers may reserve for blocks that cannot be read in place
 */
record MemoryPromises(
    long heap, long jvm, long offHeap, long python, long rapids, long arenas, long receiveBuffers) {
  static final long MIB = 1L << 20;
  private static final long MIN_JVM_BYTES = 384 * MIB;

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
    return new MemoryPromises(
        heap,
        Math.max(MIN_JVM_BYTES, heap / 10),
        offHeapBytes(conf),
        pythonBytes(conf, heap),
        rapidsBytes(conf),
        ZerohopConf.of(conf).writeBuffer() * tasks,
        ZerohopConf.of(conf).fetch().receiveBuffers());
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
   * The memory overhead that Spark asks of a cluster manager for an executor with this heap, which
   * may be a resource profile's and not {@code spark.executor.memory}.
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
    return heap + jvm + offHeap + python + rapids + arenas + receiveBuffers;
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
    final Set<Map.Entry<String, Long>> entries = parts.entrySet();
    return entries.stream()
        .filter(part -> part.getValue() > 0)
        .map(part -> part.getKey() + " " + part.getValue() / MIB)
        .collect(Collectors.joining(", "));
  }
}
