package io.zerohop.spark;

import io.zerohop.device.cuda.CudaDriver;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.OptionalLong;
import org.apache.spark.SparkConf;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * How much shared memory an executor may take when the user did not say. Segments count towards the
 * container's memory, so the default is what its limit leaves after the JVM; without a limit, a
 * share of what is free, since other executors of the node want memory too. Segments are allocated
 * only when blocks need them, so this is a bound and not a reservation.
 */
public final class PoolSizing {
  private static final Logger LOG = LoggerFactory.getLogger(PoolSizing.class);

  private static final long MIB = 1L << 20;

  /** Below this a start-up warning tells the user how to get more. */
  static final long SMALL_BYTES = 512 * MIB;

  /** The pool is never smaller than this, so that there is room for catalogs at least. */
  static final long LEAST_BYTES = 64 * MIB;

  /** What a JVM needs outside its heap: the larger of this and a tenth of the heap. */
  private static final long LEAST_JVM_OVERHEAD_BYTES = 384 * MIB;

  private static final int SHARE_WITHOUT_LIMIT = 4;
  private static final int GPU_SHARE = 5;
  private static final long UNKNOWN_GPU_POOL_BYTES = 4096 * MIB;

  private static final List<Path> CGROUP_LIMITS =
      List.of(
          Path.of("/sys/fs/cgroup/memory.max"),
          Path.of("/sys/fs/cgroup/memory/memory.limit_in_bytes"));

  private PoolSizing() {}

  /** The size in force: what the user set, or the default of this machine; logs a small default. */
  static long poolBytes(final SparkConf conf) {
    final long set = ZerohopConf.POOL_SIZE.get(conf);
    if (set > 0) {
      return set;
    }
    final OptionalLong limit = containerLimit(CGROUP_LIMITS);
    final long heap = Runtime.getRuntime().maxMemory();
    final long size = defaultBytes(limit, heap, memInfo("MemTotal:"), memInfo("MemAvailable:"));
    if (size < SMALL_BYTES) {
      LOG.warn(
          "Zerohop has only {} MiB of shared memory for shuffle blocks: {} and a JVM heap of {} MiB"
              + " leave no more. What does not fit goes to files. Raise"
              + " spark.executor.memoryOverhead (containers) or set {}.",
          size / MIB,
          limit.isPresent()
              ? "a container limit of " + limit.getAsLong() / MIB + " MiB"
              : "the node's free memory",
          heap / MIB,
          ZerohopConf.POOL_SIZE.key());
    }
    return size;
  }

  /**
   * Most bytes of GPU memory: what the user set, or the default. The driver decides, since RAPIDS'
   * executors size their pools by what it says.
   */
  public static long devicePoolBytes(final SparkConf conf) {
    final long set = ZerohopConf.DEVICE_POOL_SIZE.get(conf);
    if (set > 0) {
      return set;
    }
    final long memory = CudaDriver.leastMemory();
    return memory == 0 ? UNKNOWN_GPU_POOL_BYTES : memory / GPU_SHARE / MIB * MIB;
  }

  /**
   * The default.
   *
   * @param limit the container's limit, if one is set
   * @param heap most heap the JVM may use
   * @param total the node's memory
   * @param available what is free on the node
   */
  static long defaultBytes(
      final OptionalLong limit, final long heap, final long total, final long available) {
    final long overhead = Math.max(LEAST_JVM_OVERHEAD_BYTES, heap / 10);
    final boolean limited = limit.isPresent() && limit.getAsLong() < total;
    final long left =
        limited ? limit.getAsLong() - heap - overhead : available / SHARE_WITHOUT_LIMIT;
    return Math.max(LEAST_BYTES, left);
  }

  /** The first limit that is set; "max" and absent files mean none. */
  static OptionalLong containerLimit(final List<Path> files) {
    for (final Path file : files) {
      try {
        final String text = Files.readString(file).trim();
        if (!"max".equals(text)) {
          return OptionalLong.of(Long.parseLong(text));
        }
      } catch (final IOException | NumberFormatException e) {
        LOG.debug("No memory limit in {}", file, e);
      }
    }
    return OptionalLong.empty();
  }

  private static long memInfo(final String field) {
    try {
      for (final String line : Files.readAllLines(Path.of("/proc/meminfo"))) {
        if (line.startsWith(field)) {
          return Long.parseLong(line.replaceAll("[^0-9]", "")) << 10;
        }
      }
    } catch (final IOException | NumberFormatException e) {
      LOG.debug("No {} in /proc/meminfo", field, e);
    }
    return Runtime.getRuntime().maxMemory();
  }
}
