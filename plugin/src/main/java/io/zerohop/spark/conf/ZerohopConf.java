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
          "Whether shuffles go through Zerohop; when false everything is left to Spark's sort"
              + " shuffle.",
          ZerohopConf::bool);

  public static final ConfEntry<Long> POOL_SIZE =
      new ConfEntry<>(
          PREFIX + "pool.size",
          "size",
          AUTO,
          "Maximum shared memory that one executor may hold shuffle blocks in; `auto` is what an"
              + " executor's container, or its part of the machine, leaves after all that is promised"
              + " to others, and where there is no limit a quarter of the memory that is free at"
              + " start-up at most ([the table](memory.md#how-large-the-pools-are)). What does not"
              + " fit goes to files.",
          text -> AUTO.equals(text) ? -1L : atLeast(1, bytes(text)));

  public static final ConfEntry<Long> SEGMENT_SIZE =
      new ConfEntry<>(
          PREFIX + "segment.size",
          "size",
          "128m",
          "Size of the segments that the pool grows by; each is one memory file that peers map"
              + " once.",
          text -> within(1L << 20, 1L << 30, bytes(text)));

  public static final ConfEntry<Long> SEGMENT_IDLE =
      new ConfEntry<>(
          PREFIX + "segment.idle",
          "duration",
          "2min",
          "How long a segment without blocks keeps its memory for the next shuffle, since fresh"
              + " memory is slow to write to, before it goes back to the system.",
          text -> atLeast(0, millis(text)));

  public static final ConfEntry<Double> SPILL_START =
      new ConfEntry<>(
          PREFIX + "spill.start",
          "fraction from 0 to 1",
          "0.8",
          "From which part of a pool on shuffles that nobody uses leave it for the place below: GPU"
              + " memory for host memory, host memory for files; 1 keeps them where they are.",
          ZerohopConf::fraction);

  public static final ConfEntry<Long> SPILL_IDLE =
      new ConfEntry<>(
          PREFIX + "spill.idle",
          "duration",
          "3s",
          "How long a shuffle has to be neither written nor read by an executor before that"
              + " executor moves it.",
          text -> atLeast(0, millis(text)));

  public static final ConfEntry<Long> WRITE_BUFFER =
      new ConfEntry<>(
          PREFIX + "write.buffer",
          "size",
          "32m",
          "Private memory outside the heap in which one running map task gathers records before"
              + " they are packed into the pool; it comes out of the executor's memory overhead.",
          text -> within(1L << 16, 1L << 30, bytes(text)));

  public static final ConfEntry<Set<Path>> PATHS =
      new ConfEntry<>(
          PREFIX + "paths",
          "comma-separated list of local, peer, ucx, staged",
          "local,peer,ucx,staged",
          "Paths that readers may take; leave one out to forbid it, for tests and to narrow down a"
              + " fault.",
          ZerohopConf::paths);

  public static final ConfEntry<Boolean> CHECKSUM =
      new ConfEntry<>(
          PREFIX + "checksum.enabled",
          "boolean",
          "true",
          "Whether every block in memory carries a CRC32C that is checked before its rows are"
              + " handed out; a mismatch makes Spark run the map task again.",
          ZerohopConf::bool);

  public static final ConfEntry<String> SOCKET_DIR =
      new ConfEntry<>(
          PREFIX + "socket.dir",
          "path",
          AUTO,
          "Folder in which executors of one node find each other's sockets; `auto` is"
              + " /tmp/zerohop-<uid>. Containers of one node must share it.",
          Function.identity());

  public static final ConfEntry<Integer> PORT =
      new ConfEntry<>(
          PREFIX + "port",
          "int",
          "0",
          "TCP port at which an executor answers executors of other nodes, 0 for any; where it is"
              + " taken the next ones are tried, spark.port.maxRetries times.",
          text -> (int) within(0, 65_535, Long.parseLong(text)));

  public static final ConfEntry<Long> CONNECT_TIMEOUT =
      new ConfEntry<>(
          PREFIX + "connect.timeout",
          "duration",
          "5s",
          "Longest wait for a connection to another executor, on this node or another.",
          text -> atLeast(1, millis(text)));

  public static final ConfEntry<Long> REQUEST_TIMEOUT =
      new ConfEntry<>(
          PREFIX + "request.timeout",
          "duration",
          "10s",
          "Longest wait for an answer of a connected executor, whose blocks are staged then, and"
              + " for a map output that is still being completed.",
          text -> atLeast(1, millis(text)));

  public static final ConfEntry<Long> ORPHANS_INTERVAL =
      new ConfEntry<>(
          PREFIX + "orphans.interval",
          "duration",
          "2min",
          "How often an executor asks the driver which of the shuffles that it holds are still"
              + " there; what two answers in a row do not have is dropped. Spark tells executors"
              + " itself, but not those that it has lost sight of.",
          text -> atLeast(1, millis(text)));

  public static final ConfEntry<Long> DEVICE_TIMEOUT =
      new ConfEntry<>(
          PREFIX + "device.timeout",
          "duration",
          "2min",
          "Longest wait for copies on the GPU, which queue behind what queries do there.",
          text -> atLeast(1, millis(text)));

  public static final ConfEntry<Boolean> ASYNC_COMMIT =
      new ConfEntry<>(
          PREFIX + "device.asyncCommit",
          "boolean",
          "false",
          "Whether a map output in GPU memory is published when the GPU has accepted its copies, and"
              + " the GPU says when they have ended: a reader that comes before that waits on its own"
              + " GPU.",
          ZerohopConf::bool);

  public static final ConfEntry<Integer> WINDOW_BLOCKS =
      new ConfEntry<>(
          PREFIX + "fetch.window.blocks",
          "int",
          "1024",
          "Most blocks that a reader holds of one owner at a time.",
          text -> (int) within(1, 1 << 20, Long.parseLong(text)));

  public static final ConfEntry<Long> WINDOW_SIZE =
      new ConfEntry<>(
          PREFIX + "fetch.window.size",
          "size",
          "48m",
          "Memory that one reader reserves at a time for blocks that cannot be read in place; all"
              + " of it or none.",
          text -> within(1L << 16, 1L << 40, bytes(text)));

  public static final ConfEntry<Long> LANDING_SIZE =
      new ConfEntry<>(
          PREFIX + "fetch.landing.size",
          "size",
          "512m",
          "Memory that all readers of an executor together may reserve for blocks that cannot be"
              + " read in place.",
          text -> within(1L << 16, 1L << 40, bytes(text)));

  public static final ConfEntry<Boolean> RAPIDS_ENABLED =
      new ConfEntry<>(
          PREFIX + "rapids.enabled",
          "boolean",
          "true",
          "Whether shuffles of the RAPIDS Accelerator stay in GPU memory, where `spark.plugins` has"
              + " both its plugin and io.zerohop.spark.ZerohopPlugin.",
          ZerohopConf::bool);

  public static final ConfEntry<Long> DEVICE_POOL_SIZE =
      new ConfEntry<>(
          PREFIX + "device.pool.size",
          "size",
          AUTO,
          "Most GPU memory that one executor may hold shuffle blocks in; RAPIDS' own pool leaves it"
              + " free (spark.rapids.memory.gpu.reserve grows by it unless that is set). `auto` is"
              + " a fifth of the smallest GPU that the executor sees. What does not fit goes to host"
              + " memory.",
          text -> AUTO.equals(text) ? -1L : within(1L << 20, 1L << 44, bytes(text)));

  public static final ConfEntry<Long> DEVICE_SEGMENT_SIZE =
      new ConfEntry<>(
          PREFIX + "device.segment.size",
          "size",
          "512m",
          "Size of the segments that the pool in GPU memory grows by; peers map each once.",
          text -> within(2L << 20, 1L << 30, bytes(text)));

  public static final ConfEntry<Long> DEVICE_WINDOW_SIZE =
      new ConfEntry<>(
          PREFIX + "device.window.size",
          "size",
          "512m",
          "Most bytes of one owner's blocks that a reader on the GPU looks up under one lease.",
          text -> within(1L << 16, 1L << 40, bytes(text)));

  public static final ConfEntry<Long> RAPIDS_BATCH_SIZE =
      new ConfEntry<>(
          PREFIX + "rapids.batch.size",
          "size",
          "512m",
          "How large the batches should be that readers hand to RAPIDS; as much is gathered at once,"
              + " whoever owns it.",
          text -> within(1L << 20, 1L << 30, bytes(text)));

  public static final ConfEntry<Boolean> RAPIDS_KUDO =
      new ConfEntry<>(
          PREFIX + "rapids.kudo.enabled",
          "boolean",
          "true",
          "Whether batches of RAPIDS are split by its GPU serializer (Kudo), at a cost that does not"
              + " grow with the number of partitions, where the exchange's partitioning and types"
              + " allow. A session may set it for its queries.",
          ZerohopConf::bool);

  public static final ConfEntry<Long> RAPIDS_PACK_SIZE =
      new ConfEntry<>(
          PREFIX + "rapids.pack.size",
          "size",
          "64m",
          "How many bytes of a RAPIDS map task are packed by one launch; as much of its memory is"
              + " kept until then.",
          text -> within(1L << 16, 1L << 30, bytes(text)));

  public static final ConfEntry<String> TEST_DEVICE =
      new ConfEntry<>(
          PREFIX + "test.device",
          "host or cuda",
          "host",
          "For tests only: `cuda` puts the blocks of the rows codec into GPU memory, from which they"
              + " are copied back to the host to be read.",
          ZerohopConf::deviceName);

  public static final ConfEntry<Integer> CUDA_MULTIPROCESSORS =
      new ConfEntry<>(
          PREFIX + "cuda.multiprocessors",
          "int",
          "24",
          "Most multiprocessors (SMs) of a GPU that the copies of one stream may occupy, so that"
              + " queries keep theirs.",
          text -> (int) within(1, 1_000, Long.parseLong(text)));

  public static final ConfEntry<String> NODE_ID =
      new ConfEntry<>(
          PREFIX + "node.id",
          "text",
          "",
          "What to call the node that an executor runs on, where one kernel is not one node:"
              + " executors that call it differently read each other as if they were on two.",
          Function.identity());

  public static final ConfEntry<Boolean> UCX_TRUSTED_NETWORK =
      new ConfEntry<>(
          PREFIX + "ucx.trustedNetwork",
          "boolean",
          "false",
          "Whether only trusted programs reach the network of the executors. Only then they read"
              + " other nodes by UCX, whose protocol asks nobody for a proof (SECURITY.md).",
          ZerohopConf::bool);

  public static final ConfEntry<String> UCX_JUCX =
      new ConfEntry<>(
          PREFIX + "ucx.jucx",
          "path",
          "",
          "A jucx jar to use instead of the one in Zerohop's jar, where that does not fit the"
              + " installed libucx; on every executor's host.",
          Function.identity());

  public static final ConfEntry<UcxMode> UCX_MODE =
      new ConfEntry<>(
          PREFIX + "ucx.mode",
          "auto, get or message",
          "auto",
          "How bytes come from another node: by one-sided gets from its memory, by messages that it"
              + " sends, or by what a test read finds to be faster at first contact.",
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
