package io.zerohop.spark.conf;

import io.zerohop.shuffle.block.Path;
import java.util.Arrays;
import java.util.EnumSet;
import java.util.List;
import java.util.Locale;
import java.util.Set;
import java.util.stream.Collectors;
import org.apache.spark.SparkConf;
import scala.Tuple2;

/**
 * All configuration keys of Zerohop, each declared once. {@code docs/configuration.md} is generated
 * from here, and a test fails when it is stale.
 */
public final class ZerohopConf {
  private static final String PREFIX = "spark.zerohop.";

  /** What users set {@code spark.shuffle.manager} to. */
  public static final String SHUFFLE_MANAGER = "io.zerohop.spark.ZerohopShuffleManager";

  /** Has gets by UCX taken that are emulated, for tests on machines without an adapter. */
  public static final String EMULATED_GETS = PREFIX + "internal.ucx.emulatedGets";

  /** Stands for a value that depends on the machine. */
  public static final String AUTO = "auto";

  public static final ConfEntry<Boolean> ENABLED =
      ConfEntry.ofBoolean(
          PREFIX + "enabled",
          true,
          "Whether shuffles use Zerohop. If false, all of them use Spark's sort shuffle.");

  public static final ConfEntry<Long> POOL_SIZE =
      ConfEntry.ofSizeOrAuto(
          PREFIX + "pool.size",
          1,
          Long.MAX_VALUE,
          "Maximum shared memory per executor for shuffle blocks; others go to files. `auto` is the "
              + "container's memory less all promised memory; without a container at most a quarter "
              + "of the free memory ([table](memory.md#how-large-the-pools-are)).");

  public static final ConfEntry<Long> SEGMENT_SIZE =
      ConfEntry.ofSize(
          PREFIX + "segment.size",
          "128m",
          1L << 20,
          1L << 30,
          "Size of the segments by which the pool grows. Each is one memory file, which "
              + "peers map once.");

  public static final ConfEntry<Long> SEGMENT_IDLE =
      ConfEntry.ofDuration(
          PREFIX + "segment.idle",
          "2min",
          0,
          "How long an empty segment keeps its memory before it is returned to the system. "
              + "The next shuffle reuses it until then, since fresh memory is slow to write to.");

  public static final ConfEntry<Double> SPILL_START =
      new ConfEntry<>(
          PREFIX + "spill.start",
          "fraction from 0 to 1",
          "0.8",
          "Pool occupancy above which shuffles that are not in use are spilled: from GPU "
              + "memory to host memory, from host memory to files. 1 disables spilling.",
          ZerohopConf::fraction);

  public static final ConfEntry<Long> SPILL_IDLE =
      ConfEntry.ofDuration(
          PREFIX + "spill.idle",
          "3s",
          0,
          "How long a shuffle must be neither written nor read by an executor before that "
              + "executor may spill it.");

  public static final ConfEntry<Long> WRITE_BUFFER =
      ConfEntry.ofSize(
          PREFIX + "write.buffer",
          "32m",
          1L << 16,
          1L << 30,
          "Off-heap buffer per running map task for records before they are packed into the "
              + "pool. Part of the executor's memory overhead.");

  public static final ConfEntry<Set<Path>> PATHS =
      new ConfEntry<>(
          PREFIX + "paths",
          "comma-separated list of local, peer, ucx, sent, staged",
          "local,peer,ucx,sent,staged",
          "Paths by which readers may fetch blocks. Remove one to forbid it, for tests or to "
              + "isolate a fault.",
          ZerohopConf::paths);

  /** The codec of sent blocks. */
  public enum SentCodec {
    AUTO,
    NONE,
    LZ4,
    ZSTD
  }

  public static final ConfEntry<SentCodec> SENT_CODEC =
      new ConfEntry<>(
          PREFIX + "sent.codec",
          "auto, none, lz4 or zstd",
          AUTO,
          "Codec for blocks that are sent to another node. `auto` measures each link and "
              + "compresses if that moves more blocks through it, which fast links do not need. "
              + "spark.shuffle.compress=false has the effect of `none`.",
          text -> SentCodec.valueOf(text.toUpperCase(Locale.ROOT)));

  public static final ConfEntry<Boolean> CHECKSUM =
      ConfEntry.ofBoolean(
          PREFIX + "checksum.enabled",
          true,
          "Whether blocks in memory carry a CRC32C checksum that readers verify. A mismatch "
              + "fails the fetch, and Spark runs the map task again.");

  public static final ConfEntry<String> SOCKET_DIR =
      ConfEntry.ofText(
          PREFIX + "socket.dir",
          "path",
          AUTO,
          "Directory of the sockets by which executors of one node connect: private (0700), or "
              + "shared and sticky (1777). `auto` is /tmp, or /dev/shm if /tmp cannot be used. "
              + "Containers of one node must share it.");

  public static final ConfEntry<Integer> PORT =
      ConfEntry.ofInt(
          PREFIX + "port",
          0,
          0,
          65_535,
          "TCP port for connections from executors of other nodes; 0 takes a free one. If it "
              + "is in use, the ports behind it are tried, spark.port.maxRetries times at most.");

  public static final ConfEntry<Long> CONNECT_TIMEOUT =
      ConfEntry.ofDuration(
          PREFIX + "connect.timeout",
          "5s",
          1,
          "Timeout for connecting to another executor, on the same node or another.");

  public static final ConfEntry<Long> REQUEST_TIMEOUT =
      ConfEntry.ofDuration(
          PREFIX + "request.timeout",
          "10s",
          1,
          "Timeout for the response of a connected executor, whose blocks are staged "
              + "afterwards, and for a map output whose copies have not ended.");

  public static final ConfEntry<Long> ORPHANS_INTERVAL =
      ConfEntry.ofDuration(
          PREFIX + "orphans.interval",
          "2min",
          1,
          "Interval at which an executor asks the driver which of the shuffles that it holds "
              + "still exist. One that is missing from two consecutive responses is removed. "
              + "Needed if an executor missed Spark's own notification.");

  public static final ConfEntry<Long> DEVICE_TIMEOUT =
      ConfEntry.ofDuration(
          PREFIX + "device.timeout",
          "2min",
          1,
          "Timeout for copies on the GPU, which queue behind the kernels of queries.");

  public static final ConfEntry<Boolean> ASYNC_COMMIT =
      ConfEntry.ofBoolean(
          PREFIX + "device.asyncCommit",
          false,
          "Whether a map output in GPU memory is published once the GPU has accepted its "
              + "copies, before they have ended. A reader that comes earlier waits for them on its "
              + "own GPU.");

  public static final ConfEntry<Integer> WINDOW_BLOCKS =
      ConfEntry.ofInt(
          PREFIX + "fetch.window.blocks",
          1024,
          1,
          1 << 20,
          "Maximum number of blocks of one owner that a reader holds under one lease.");

  public static final ConfEntry<Long> WINDOW_SIZE =
      ConfEntry.ofSize(
          PREFIX + "fetch.window.size",
          "48m",
          1L << 16,
          1L << 40,
          "Size of the receive buffers that one reader reserves for blocks that cannot be read "
              + "in place.");

  public static final ConfEntry<Long> RECEIVE_BUFFER_SIZE =
      ConfEntry.ofSize(
          PREFIX + "fetch.landing.size",
          "512m",
          1L << 16,
          1L << 40,
          "Maximum size of the receive buffers of all readers of an executor, for blocks "
              + "that cannot be read in place.");

  public static final ConfEntry<Boolean> RAPIDS_ENABLED =
      ConfEntry.ofBoolean(
          PREFIX + "rapids.enabled",
          true,
          "Whether shuffles of the RAPIDS Accelerator keep their blocks in GPU memory. "
              + "Requires both its plugin and io.zerohop.spark.ZerohopPlugin in `spark.plugins`.");

  public static final ConfEntry<Long> DEVICE_POOL_SIZE =
      ConfEntry.ofSizeOrAuto(
          PREFIX + "device.pool.size",
          1L << 20,
          1L << 44,
          "Maximum GPU memory per executor for shuffle blocks. RAPIDS' own pool leaves it "
              + "free: spark.rapids.memory.gpu.reserve is raised by it unless that is set. `auto` "
              + "is a fifth of the smallest GPU that the executor sees. Blocks that do not fit go "
              + "to host memory.");

  public static final ConfEntry<Long> DEVICE_SEGMENT_SIZE =
      ConfEntry.ofSize(
          PREFIX + "device.segment.size",
          "512m",
          2L << 20,
          1L << 30,
          "Size of the segments by which the pool in GPU memory grows. Peers map each once.");

  public static final ConfEntry<Long> DEVICE_WINDOW_SIZE =
      ConfEntry.ofSize(
          PREFIX + "device.window.size",
          "512m",
          1L << 16,
          1L << 40,
          "Maximum bytes of one owner's blocks that a reader on the GPU looks up under one "
              + "lease.");

  public static final ConfEntry<Long> RAPIDS_BATCH_SIZE =
      ConfEntry.ofSize(
          PREFIX + "rapids.batch.size",
          "512m",
          1L << 20,
          1L << 30,
          "Target size of the batches that readers pass to RAPIDS, which is also what they "
              + "gather at once from all owners.");

  public static final ConfEntry<Boolean> RAPIDS_KUDO =
      ConfEntry.ofBoolean(
          PREFIX + "rapids.kudo.enabled",
          true,
          "Whether batches of RAPIDS are split by its GPU serializer (Kudo), whose cost does "
              + "not grow with the number of partitions, where the exchange's partitioning and "
              + "types allow. Can be set per session.");

  public static final ConfEntry<Long> RAPIDS_PACK_SIZE =
      ConfEntry.ofSize(
          PREFIX + "rapids.pack.size",
          "64m",
          1L << 16,
          1L << 30,
          "Bytes of a RAPIDS map task that are packed by one launch. The task holds as much "
              + "memory until then.");

  public static final ConfEntry<String> TEST_DEVICE =
      new ConfEntry<>(
          PREFIX + "test.device",
          "host or cuda",
          "host",
          "For tests only. `cuda` puts blocks of the rows codec into GPU memory, from which "
              + "they are copied back to the host to be read.",
          ZerohopConf::deviceName);

  public static final ConfEntry<Integer> CUDA_MULTIPROCESSORS =
      ConfEntry.ofInt(
          PREFIX + "cuda.multiprocessors",
          24,
          1,
          1_000,
          "Maximum number of a GPU's multiprocessors (SMs) that the copies of one stream "
              + "occupy.");

  public static final ConfEntry<Boolean> FABRIC =
      ConfEntry.ofBoolean(
          PREFIX + "fabric.enabled",
          true,
          "Whether blocks in GPU memory are read over NVLink between nodes. GPUs of the nodes must "
              + "be one clique of an NVLink fabric, and a trial at start must pass. Not tested on hardware. Such reads count as path `peer`, and "
              + "need `ucx` beside it in `spark.zerohop.paths`.");

  public static final ConfEntry<String> NODE_ID =
      ConfEntry.ofText(
          PREFIX + "node.id",
          "text",
          "",
          "Name of the node that an executor runs on, where several nodes share one kernel. "
              + "Executors with different names treat each other as executors of different nodes.");

  public static final ConfEntry<Boolean> UCX_TRUSTED_NETWORK =
      ConfEntry.ofBoolean(
          PREFIX + "ucx.trustedNetwork",
          false,
          "Whether only trusted programs can reach the executors' network. UCX is used "
              + "between nodes only if true, because its protocol does not authenticate peers "
              + "(SECURITY.md).");

  public static final ConfEntry<String> UCX_JUCX =
      ConfEntry.ofText(
          PREFIX + "ucx.jucx",
          "path",
          "",
          "Path of a jucx jar on every executor's host, used instead of the bundled one "
              + "where that does not match the installed libucx.");

  public static final ConfEntry<Long> UCX_IDLE =
      ConfEntry.ofDuration(
          PREFIX + "ucx.idle",
          "10min",
          1_000,
          "How long an executor stays connected to one of another node whose blocks it does not "
              + "read. The next reader connects anew.");

  public static final ConfEntry<Long> UI_INTERVAL =
      ConfEntry.ofDuration(
          PREFIX + "ui.interval",
          "5s",
          0,
          "How often executors report to the driver for the tab GPU Shuffle in Spark's UI, and "
              + "into the event log. 0 disables the tab and its events.");

  /** All keys, in the order of the documentation. */
  static final List<ConfEntry<?>> ENTRIES =
      List.of(
          ENABLED,
          POOL_SIZE,
          SEGMENT_SIZE,
          SEGMENT_IDLE,
          SPILL_START,
          SPILL_IDLE,
          WRITE_BUFFER,
          PATHS,
          SENT_CODEC,
          CHECKSUM,
          SOCKET_DIR,
          PORT,
          NODE_ID,
          UCX_TRUSTED_NETWORK,
          UCX_JUCX,
          UCX_IDLE,
          CONNECT_TIMEOUT,
          REQUEST_TIMEOUT,
          ORPHANS_INTERVAL,
          UI_INTERVAL,
          WINDOW_BLOCKS,
          WINDOW_SIZE,
          RECEIVE_BUFFER_SIZE,
          RAPIDS_ENABLED,
          DEVICE_POOL_SIZE,
          DEVICE_SEGMENT_SIZE,
          DEVICE_WINDOW_SIZE,
          DEVICE_TIMEOUT,
          ASYNC_COMMIT,
          RAPIDS_BATCH_SIZE,
          RAPIDS_KUDO,
          RAPIDS_PACK_SIZE,
          CUDA_MULTIPROCESSORS,
          FABRIC,
          TEST_DEVICE);

  private ZerohopConf() {}

  /**
   * Reads every key once, so that a bad value stops the application at its start.
   *
   * @return the keys under {@code spark.zerohop.} that nobody declared, most likely misspelt
   */
  public static List<String> validate(final SparkConf conf) {
    ENTRIES.forEach(entry -> entry.get(conf));
    final Set<String> known = ENTRIES.stream().map(ConfEntry::key).collect(Collectors.toSet());
    return Arrays.stream(conf.getAllWithPrefix(PREFIX))
        .map(Tuple2::_1)
        .map(name -> PREFIX + name)
        .filter(key -> !known.contains(key) && !key.startsWith(PREFIX + "internal."))
        .sorted()
        .toList();
  }

  private static double fraction(final String text) {
    final double value = Double.parseDouble(text);
    if (!(value >= 0 && value <= 1)) {
      throw new IllegalArgumentException("must be from 0 to 1");
    }
    return value;
  }

  private static String deviceName(final String text) {
    if (!text.equals("host") && !text.equals("cuda")) {
      throw new IllegalArgumentException("must be host or cuda");
    }
    return text;
  }

  private static Set<Path> paths(final String text) {
    final Set<Path> paths = EnumSet.noneOf(Path.class);
    for (final String word : text.split(",")) {
      paths.add(Path.valueOf(word.trim().toUpperCase(Locale.ROOT)));
    }
    return paths;
  }
}
