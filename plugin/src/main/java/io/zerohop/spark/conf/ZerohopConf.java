package io.zerohop.spark.conf;

import io.zerohop.shuffle.block.Path;
import io.zerohop.shuffle.transport.ucx.engine.UcxMode;
import java.util.Arrays;
import java.util.EnumSet;
import java.util.List;
import java.util.Locale;
import java.util.Set;
import java.util.function.Function;
import java.util.stream.Collectors;
import org.apache.spark.SparkConf;
import org.apache.spark.network.util.JavaUtils;
import scala.Tuple2;

/**
 * Every key of Zerohop, declared once. {@code docs/configuration.md} is generated from here, and a
 * test fails when it is stale.
 */
public final class ZerohopConf {
  private static final String PREFIX = "spark.zerohop.";

  /** What users set {@code spark.shuffle.manager} to. */
  public static final String SHUFFLE_MANAGER = "io.zerohop.spark.ZerohopShuffleManager";

  /** Stands for a default that depends on the machine. */
  public static final String AUTO = "auto";

  public static final ConfEntry<Boolean> ENABLED =
      new ConfEntry<>(
          PREFIX + "enabled",
          "boolean",
          "true",
          "Whether shuffles use Zerohop. If false, all of them use Spark's sort shuffle.",
          ZerohopConf::bool);

  public static final ConfEntry<Long> POOL_SIZE =
      new ConfEntry<>(
          PREFIX + "pool.size",
          "size",
          AUTO,
          "Maximum shared memory per executor for shuffle blocks. `auto` takes what the "
              + "executor's container, or its share of the machine, leaves after all memory "
              + "promised to others; where there is no such limit, at most a quarter of the memory "
              + "that is free at start-up ([table](memory.md#how-large-the-pools-are)). Blocks "
              + "that do not fit are written to files.",
          text -> AUTO.equals(text) ? -1L : atLeast(1, bytes(text)));

  public static final ConfEntry<Long> SEGMENT_SIZE =
      new ConfEntry<>(
          PREFIX + "segment.size",
          "size",
          "128m",
          "Size of the segments by which the pool grows. Each is one memory file, which "
              + "peers map once.",
          text -> within(1L << 20, 1L << 30, bytes(text)));

  public static final ConfEntry<Long> SEGMENT_IDLE =
      new ConfEntry<>(
          PREFIX + "segment.idle",
          "duration",
          "2min",
          "How long an empty segment keeps its memory before it is returned to the system. "
              + "The next shuffle reuses it until then, since fresh memory is slow to write to.",
          text -> atLeast(0, millis(text)));

  public static final ConfEntry<Double> SPILL_START =
      new ConfEntry<>(
          PREFIX + "spill.start",
          "fraction from 0 to 1",
          "0.8",
          "Pool occupancy above which shuffles that are not in use are spilled: from GPU "
              + "memory to host memory, from host memory to files. 1 disables spilling.",
          ZerohopConf::fraction);

  public static final ConfEntry<Long> SPILL_IDLE =
      new ConfEntry<>(
          PREFIX + "spill.idle",
          "duration",
          "3s",
          "How long a shuffle must be neither written nor read by an executor before that "
              + "executor may spill it.",
          text -> atLeast(0, millis(text)));

  public static final ConfEntry<Long> WRITE_BUFFER =
      new ConfEntry<>(
          PREFIX + "write.buffer",
          "size",
          "32m",
          "Off-heap buffer per running map task for records before they are packed into the "
              + "pool. Part of the executor's memory overhead.",
          text -> within(1L << 16, 1L << 30, bytes(text)));

  public static final ConfEntry<Set<Path>> PATHS =
      new ConfEntry<>(
          PREFIX + "paths",
          "comma-separated list of local, peer, ucx, staged",
          "local,peer,ucx,staged",
          "Paths by which readers may fetch blocks. Remove one to forbid it, for tests or to "
              + "isolate a fault.",
          ZerohopConf::paths);

  public static final ConfEntry<Boolean> CHECKSUM =
      new ConfEntry<>(
          PREFIX + "checksum.enabled",
          "boolean",
          "true",
          "Whether blocks in memory carry a CRC32C checksum that readers verify. A mismatch "
              + "fails the fetch, and Spark runs the map task again.",
          ZerohopConf::bool);

  public static final ConfEntry<String> SOCKET_DIR =
      new ConfEntry<>(
          PREFIX + "socket.dir",
          "path",
          AUTO,
          "Directory of the sockets by which executors of one node connect. `auto` is "
              + "/tmp/zerohop-<uid>. Containers of one node must share it.",
          Function.identity());

  public static final ConfEntry<Integer> PORT =
      new ConfEntry<>(
          PREFIX + "port",
          "int",
          "0",
          "TCP port for connections from executors of other nodes; 0 takes a free one. If it "
              + "is in use, the ports behind it are tried, spark.port.maxRetries times at most.",
          text -> (int) within(0, 65_535, Long.parseLong(text)));

  public static final ConfEntry<Long> CONNECT_TIMEOUT =
      new ConfEntry<>(
          PREFIX + "connect.timeout",
          "duration",
          "5s",
          "Timeout for connecting to another executor, on the same node or another.",
          text -> atLeast(1, millis(text)));

  public static final ConfEntry<Long> REQUEST_TIMEOUT =
      new ConfEntry<>(
          PREFIX + "request.timeout",
          "duration",
          "10s",
          "Timeout for the answer of a connected executor, whose blocks are staged "
              + "afterwards, and for a map output whose copies have not ended.",
          text -> atLeast(1, millis(text)));

  public static final ConfEntry<Long> ORPHANS_INTERVAL =
      new ConfEntry<>(
          PREFIX + "orphans.interval",
          "duration",
          "2min",
          "Interval at which an executor asks the driver which of the shuffles that it holds "
              + "still exist. One that is missing from two answers in a row is removed. Needed "
              + "where an executor missed Spark's own notification.",
          text -> atLeast(1, millis(text)));

  public static final ConfEntry<Long> DEVICE_TIMEOUT =
      new ConfEntry<>(
          PREFIX + "device.timeout",
          "duration",
          "2min",
          "Timeout for copies on the GPU, which queue behind the kernels of queries.",
          text -> atLeast(1, millis(text)));

  public static final ConfEntry<Boolean> ASYNC_COMMIT =
      new ConfEntry<>(
          PREFIX + "device.asyncCommit",
          "boolean",
          "false",
          "Whether a map output in GPU memory is published once the GPU has accepted its "
              + "copies, before they have ended. A reader that comes earlier waits for them on its "
              + "own GPU.",
          ZerohopConf::bool);

  public static final ConfEntry<Integer> WINDOW_BLOCKS =
      new ConfEntry<>(
          PREFIX + "fetch.window.blocks",
          "int",
          "1024",
          "Maximum number of blocks of one owner that a reader holds at a time.",
          text -> (int) within(1, 1 << 20, Long.parseLong(text)));

  public static final ConfEntry<Long> WINDOW_SIZE =
      new ConfEntry<>(
          PREFIX + "fetch.window.size",
          "size",
          "48m",
          "Size of the receive buffers that one reader reserves at a time for blocks that "
              + "cannot be read in place.",
          text -> within(1L << 16, 1L << 40, bytes(text)));

  public static final ConfEntry<Long> LANDING_SIZE =
      new ConfEntry<>(
          PREFIX + "fetch.landing.size",
          "size",
          "512m",
          "Maximum size of the receive buffers of all readers of an executor, for blocks "
              + "that cannot be read in place.",
          text -> within(1L << 16, 1L << 40, bytes(text)));

  public static final ConfEntry<Boolean> RAPIDS_ENABLED =
      new ConfEntry<>(
          PREFIX + "rapids.enabled",
          "boolean",
          "true",
          "Whether shuffles of the RAPIDS Accelerator keep their blocks in GPU memory. "
              + "Requires both its plugin and io.zerohop.spark.ZerohopPlugin in `spark.plugins`.",
          ZerohopConf::bool);

  public static final ConfEntry<Long> DEVICE_POOL_SIZE =
      new ConfEntry<>(
          PREFIX + "device.pool.size",
          "size",
          AUTO,
          "Maximum GPU memory per executor for shuffle blocks. RAPIDS' own pool leaves it "
              + "free: spark.rapids.memory.gpu.reserve is raised by it unless that is set. `auto` "
              + "is a fifth of the smallest GPU that the executor sees. Blocks that do not fit go "
              + "to host memory.",
          text -> AUTO.equals(text) ? -1L : within(1L << 20, 1L << 44, bytes(text)));

  public static final ConfEntry<Long> DEVICE_SEGMENT_SIZE =
      new ConfEntry<>(
          PREFIX + "device.segment.size",
          "size",
          "512m",
          "Size of the segments by which the pool in GPU memory grows. Peers map each once.",
          text -> within(2L << 20, 1L << 30, bytes(text)));

  public static final ConfEntry<Long> DEVICE_WINDOW_SIZE =
      new ConfEntry<>(
          PREFIX + "device.window.size",
          "size",
          "512m",
          "Maximum bytes of one owner's blocks that a reader on the GPU looks up under one "
              + "lease.",
          text -> within(1L << 16, 1L << 40, bytes(text)));

  public static final ConfEntry<Long> RAPIDS_BATCH_SIZE =
      new ConfEntry<>(
          PREFIX + "rapids.batch.size",
          "size",
          "512m",
          "Target size of the batches that readers pass to RAPIDS, which is also what they "
              + "gather at once from all owners.",
          text -> within(1L << 20, 1L << 30, bytes(text)));

  public static final ConfEntry<Boolean> RAPIDS_KUDO =
      new ConfEntry<>(
          PREFIX + "rapids.kudo.enabled",
          "boolean",
          "true",
          "Whether batches of RAPIDS are split by its GPU serializer (Kudo), whose cost does "
              + "not grow with the number of partitions, where the exchange's partitioning and "
              + "types allow. Can be set per session.",
          ZerohopConf::bool);

  public static final ConfEntry<Long> RAPIDS_PACK_SIZE =
      new ConfEntry<>(
          PREFIX + "rapids.pack.size",
          "size",
          "64m",
          "Bytes of a RAPIDS map task that are packed by one launch. The task holds as much "
              + "memory until then.",
          text -> within(1L << 16, 1L << 30, bytes(text)));

  public static final ConfEntry<String> TEST_DEVICE =
      new ConfEntry<>(
          PREFIX + "test.device",
          "host or cuda",
          "host",
          "For tests only. `cuda` puts blocks of the rows codec into GPU memory, from which "
              + "they are copied back to the host to be read.",
          ZerohopConf::deviceName);

  public static final ConfEntry<Integer> CUDA_MULTIPROCESSORS =
      new ConfEntry<>(
          PREFIX + "cuda.multiprocessors",
          "int",
          "24",
          "Maximum number of a GPU's multiprocessors (SMs) that the copies of one stream "
              + "occupy.",
          text -> (int) within(1, 1_000, Long.parseLong(text)));

  public static final ConfEntry<String> NODE_ID =
      new ConfEntry<>(
          PREFIX + "node.id",
          "text",
          "",
          "Name of the node that an executor runs on, where several nodes share one kernel. "
              + "Executors with different names treat each other as executors of different nodes.",
          Function.identity());

  public static final ConfEntry<Boolean> UCX_TRUSTED_NETWORK =
      new ConfEntry<>(
          PREFIX + "ucx.trustedNetwork",
          "boolean",
          "false",
          "Whether only trusted programs can reach the executors' network. UCX is used "
              + "between nodes only if true, since its protocol does not authenticate peers "
              + "(SECURITY.md).",
          ZerohopConf::bool);

  public static final ConfEntry<String> UCX_JUCX =
      new ConfEntry<>(
          PREFIX + "ucx.jucx",
          "path",
          "",
          "Path of a jucx jar on every executor's host, used instead of the bundled one "
              + "where that does not match the installed libucx.",
          Function.identity());

  public static final ConfEntry<UcxMode> UCX_MODE =
      new ConfEntry<>(
          PREFIX + "ucx.mode",
          "auto, get or message",
          "auto",
          "How blocks are transferred from another node: `get` reads the owner's memory "
              + "one-sided, `message` makes the owner send them, `auto` takes what a test read at "
              + "first contact finds to be faster.",
          text -> UcxMode.valueOf(text.toUpperCase(Locale.ROOT)));

  private static final List<ConfEntry<?>> ENTRIES =
      List.of(
          ENABLED,
          POOL_SIZE,
          SEGMENT_SIZE,
          SEGMENT_IDLE,
          SPILL_START,
          SPILL_IDLE,
          WRITE_BUFFER,
          PATHS,
          CHECKSUM,
          SOCKET_DIR,
          PORT,
          NODE_ID,
          UCX_TRUSTED_NETWORK,
          UCX_JUCX,
          UCX_MODE,
          CONNECT_TIMEOUT,
          REQUEST_TIMEOUT,
          ORPHANS_INTERVAL,
          WINDOW_BLOCKS,
          WINDOW_SIZE,
          LANDING_SIZE,
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
          TEST_DEVICE);

  private ZerohopConf() {}

  /** All keys, in the order of the documentation. */
  public static List<ConfEntry<?>> entries() {
    return ENTRIES;
  }

  /**
   * Reads every key once, so that a bad value stops the application at its start.
   *
   * @return the keys under {@code spark.zerohop.} that nobody declared, most likely misspelt
   */
  static List<String> validate(final SparkConf conf) {
    ENTRIES.forEach(entry -> entry.get(conf));
    final Set<String> known = ENTRIES.stream().map(ConfEntry::key).collect(Collectors.toSet());
    return Arrays.stream(conf.getAllWithPrefix(PREFIX))
        .map(Tuple2::_1)
        .map(name -> PREFIX + name)
        .filter(key -> !known.contains(key) && !key.startsWith(PREFIX + "internal."))
        .sorted()
        .toList();
  }

  /** The text of {@code docs/configuration.md}. */
  public static String markdown() {
    final StringBuilder page = new StringBuilder();
    page.append("# Configuration\n\n");
    page.append("Generated from `ZerohopConf`; a test fails when this page is stale. ");
    page.append("No key is needed beside `spark.shuffle.manager`.\n\n");
    page.append("| key | type | default | what it does |\n| --- | --- | --- | --- |\n");
    for (final ConfEntry<?> entry : ENTRIES) {
      page.append(
          String.format(
              "| `%s` | %s | `%s` | %s |%n",
              entry.key(), entry.type(), entry.defaultText(), entry.doc()));
    }
    return page.toString();
  }

  private static boolean bool(final String text) {
    return switch (text.toLowerCase(Locale.ROOT)) {
      case "true" -> true;
      case "false" -> false;
      default -> throw new IllegalArgumentException("neither true nor false");
    };
  }

  private static long bytes(final String text) {
    return JavaUtils.byteStringAsBytes(text);
  }

  private static long millis(final String text) {
    return JavaUtils.timeStringAsMs(text);
  }

  private static long atLeast(final long least, final long value) {
    return within(least, Long.MAX_VALUE, value);
  }

  private static long within(final long least, final long most, final long value) {
    if (value < least || value > most) {
      throw new IllegalArgumentException("must be from " + least + " to " + most);
    }
    return value;
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
