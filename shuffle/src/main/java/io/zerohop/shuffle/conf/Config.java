package io.zerohop.shuffle.conf;

import io.zerohop.shuffle.block.BlockPath;
import java.lang.annotation.ElementType;
import java.lang.annotation.Retention;
import java.lang.annotation.RetentionPolicy;
import java.lang.annotation.Target;
import java.time.Duration;
import java.util.Set;
import java.util.function.UnaryOperator;
import org.jspecify.annotations.Nullable;

/**
 * The configuration of an application, and the table of its keys: each component with a {@link Key}
 * is one of them, and nothing else of the code knows its type, default or bounds. {@code
 * docs/configuration.md} is generated from here, and a test fails when it is stale.
 *
 * <p>Sizes are in bytes. Handed down whole, or by the record of one concern; no value is copied.
 * Immutable and thread safe.
 */
public record Config(
    @Key(
            name = "enabled",
            value = "true",
            since = "0.2.0",
            doc = "Whether shuffles use Zerohop. If false, all of them use Spark's sort shuffle.")
        boolean enabled,
    Pool pool,
    Spill spill,
    @Key(
            name = "write.buffer",
            value = "32m",
            min = "64k",
            max = "1g",
            since = "0.2.0",
            doc =
                "Off-heap buffer per running map task for records before they are packed into the"
                    + " pool. Part of the executor's memory overhead.")
        long writeBuffer,
    @Key(
            name = "paths",
            value = "local,peer,ucx,sent,staged",
            since = "0.2.0",
            doc =
                "Paths by which readers may fetch blocks. Remove one to forbid it, for tests or to"
                    + " isolate a fault.")
        Set<BlockPath> paths,
    @Key(
            name = "sent.codec",
            value = "auto",
            since = "0.3.0",
            doc =
                "Compression of blocks that are sent to another node. `auto` measures each"
                    + " link and compresses where that is faster. spark.shuffle.compress=false has"
                    + " the effect of `none`.")
        SentCodec sentCodec,
    @Key(
            name = "checksum.enabled",
            value = "true",
            since = "0.2.0",
            doc =
                "Whether blocks in memory carry a CRC32C checksum that readers verify. A mismatch"
                    + " fails the fetch, and Spark runs the map task again.")
        boolean checksum,
    @Key(
            name = "socket.dir",
            value = "auto",
            since = "0.2.0",
            doc =
                "Directory of the sockets by which executors of one node connect; its"
                    + " containers must share it. Private (0700), or sticky (1777) for all users."
                    + " `auto` is a folder in /tmp or /dev/shm.")
        java.nio.file.@Nullable Path socketDir,
    @Key(
            name = "port",
            value = "0",
            min = "0",
            max = "65535",
            since = "0.2.0",
            doc =
                "TCP port for connections from executors of other nodes; 0 takes a free one. It is"
                    + " opened only with spark.zerohop.ucx.trustedNetwork. If it is in use, the ports behind it are tried, spark.port.maxRetries times at"
                    + " most.")
        int port,
    @Key(
            name = "node.id",
            value = "",
            since = "0.2.0",
            doc =
                "Name of the node that an executor runs on, where several nodes share one kernel."
                    + " Executors with different names treat each other as executors of different"
                    + " nodes.")
        String nodeId,
    Ucx ucx,
    @Key(
            name = "connect.timeout",
            value = "5s",
            min = "1ms",
            since = "0.2.0",
            doc = "Timeout for connecting to another executor, on the same node or another.")
        Duration connectTimeout,
    @Key(
            name = "request.timeout",
            value = "10s",
            min = "1ms",
            since = "0.2.0",
            doc =
                "Timeout for the response of a connected executor, whose blocks are staged"
                    + " afterwards.")
        Duration requestTimeout,
    @Key(
            name = "orphans.interval",
            value = "2min",
            min = "1ms",
            since = "0.2.0",
            doc =
                "Interval at which an executor asks the driver which shuffles still exist."
                    + " It removes those that are missing from two consecutive responses.")
        Duration orphansInterval,
    @Key(
            name = "ui.interval",
            value = "5s",
            min = "0",
            since = "0.2.0",
            doc =
                "How often executors report to the driver for the tab GPU Shuffle in Spark's UI,"
                    + " and into the event log. 0 disables the tab and its events.")
        Duration uiInterval,
    Keeper keeper,
    Fetch fetch,
    Rapids rapids,
    DeviceMemory device,
    @Key(
            name = "cuda.multiprocessors",
            value = "24",
            min = "1",
            max = "1000",
            since = "0.2.0",
            doc =
                "Maximum number of a GPU's multiprocessors (SMs) that the copies of one stream"
                    + " occupy.")
        int cudaMultiprocessors,
    @Key(
            name = "fabric.enabled",
            value = "false",
            since = "0.2.0",
            doc =
                "Whether GPU memory of other nodes is read over an NVLink fabric (IMEX), as"
                    + " path `peer`. Needs `ucx` in `spark.zerohop.paths`, too. Not tested on"
                    + " hardware.")
        boolean fabric,
    @Key(
            name = "test.device",
            value = "host",
            since = "0.2.0",
            doc =
                "For tests only. `cuda` puts blocks of the rows codec into GPU memory, from which"
                    + " they are copied back to the host to be read.")
        TestDevice testDevice) {

  /** A size that stands for {@code auto}: it depends on the machine. */
  public static final long AUTO = -1;

  /**
   * The longest wait of a reader for a map output that was published before its copies ended. The
   * owner withdraws an output after {@code device.timeout}, so its answer comes first.
   */
  public Duration readyTimeout() {
    return device.timeout().plus(requestTimeout);
  }

  /** The pool in shared host memory. */
  public record Pool(
      @Key(
              name = "pool.size",
              value = "auto",
              min = "1",
              since = "0.2.0",
              doc =
                  "Maximum shared memory per executor for shuffle blocks; others go to files."
                      + " `auto` is the container's memory less all promised memory. Without a"
                      + " container it is at most a quarter of the free memory"
                      + " ([table](memory.md#how-large-the-pools-are)).")
          long size,
      @Key(
              name = "segment.size",
              value = "128m",
              min = "1m",
              max = "1g",
              since = "0.2.0",
              doc =
                  "Size of the segments by which the pool grows. Each is one memory file, which"
                      + " peers map once.")
          long segmentSize,
      @Key(
              name = "segment.idle",
              value = "2min",
              min = "0",
              since = "0.2.0",
              doc =
                  "How long an empty segment keeps its memory before it is returned to the system."
                      + " The next shuffle reuses it until then, since fresh memory is slow to write"
                      + " to.")
          Duration segmentIdle) {}

  /** The thresholds at which map outputs leave memory. */
  public record Spill(
      @Key(
              name = "spill.start",
              value = "0.8",
              min = "0",
              max = "1",
              since = "0.2.0",
              doc =
                  "Pool occupancy above which shuffles that are not in use are spilled: from GPU"
                      + " memory to host memory, from host memory to files. 1 disables spilling.")
          double start,
      @Key(
              name = "spill.idle",
              value = "3s",
              min = "0",
              since = "0.2.0",
              doc =
                  "How long a shuffle must be neither written nor read by an executor before that"
                      + " executor may spill it.")
          Duration idle) {}

  /** The settings for blocks that come from other nodes by UCX. */
  public record Ucx(
      @Key(
              name = "ucx.trustedNetwork",
              value = "false",
              since = "0.2.0",
              doc =
                  "Whether only trusted programs can reach the executors' network. UCX is used"
                      + " between nodes only if true, because its protocol does not authenticate peers"
                      + " (SECURITY.md).")
          boolean trustedNetwork,
      @Key(
              name = "ucx.jucx",
              value = "",
              since = "0.2.0",
              doc =
                  "Path of a jucx jar on every executor's host, used instead of the bundled one"
                      + " where that does not match the installed libucx.")
          java.nio.file.@Nullable Path jucx,
      @Key(
              name = "ucx.idle",
              value = "10min",
              min = "1s",
              since = "0.2.0",
              doc =
                  "How long an executor stays connected to one of another node whose blocks it does"
                      + " not read. The next reader connects anew.")
          Duration idle,
      @Key(
              name = "internal.ucx.emulatedGets",
              value = "false",
              since = "0.2.0",
              doc = "Has gets by UCX taken that are emulated, for tests without an adapter.")
          boolean emulatedGets) {}

  /** The process that holds map outputs beyond the end of their executors. */
  public record Keeper(
      @Key(
              name = "keeper",
              value = "false",
              since = "0.3.0",
              doc =
                  "Whether one process a node, the [keeper](keeper.md), holds map outputs in memory"
                      + " beyond the end of their executors, so that they need not be computed"
                      + " again. Set when the application starts.")
          boolean enabled,
      @Key(
              name = "keeper.size",
              value = "auto",
              min = "1",
              since = "0.3.0",
              doc =
                  "Maximum memory that a keeper holds, of executors that live and that have ended."
                      + " The rest ends with its executor. By default half of what the machine or"
                      + " container has.")
          long size,
      @Key(
              name = "keeper.life",
              value = "1h",
              min = "1s",
              since = "0.3.0",
              doc =
                  "How long map outputs stay after the end of their executor. Those that are read"
                      + " later are computed again.")
          Duration life,
      @Key(
              name = "keeper.files.size",
              value = "auto",
              min = "0",
              since = "0.3.0",
              doc =
                  "Maximum size of the [files](keeper.md#files) in which a keeper has map outputs"
                      + " of executors that have ended. By default half of what is free at its"
                      + " start. 0 writes none.")
          long filesSize,
      @Key(
              name = "keeper.files.idle",
              value = "10m",
              min = "0s",
              since = "0.3.0",
              doc =
                  "How long nobody has read what an executor has left until the keeper writes it to"
                      + " files. Where memory is short that does not matter.")
          Duration filesIdle,
      @Key(
              name = "keeper.port",
              value = "0",
              min = "0",
              max = "65535",
              since = "0.3.0",
              doc =
                  "TCP port at which keepers answer executors of other nodes, or the first of"
                      + " `spark.port.maxRetries` that are tried. 0 takes any port.")
          int port,
      @Key(
              name = "keeper.daemon",
              value = "auto",
              since = "0.3.0",
              doc =
                  "Folder of the [daemon](keeper.md#a-daemon-for-each-node) that starts the keepers"
                      + " of a node. If none answers there, the first executor starts the keeper."
                      + " `auto` is the daemon's own default, /tmp/zerohop-keeper-UID.")
          java.nio.file.@Nullable Path daemon) {}

  /** The limits of what one reader, and all of an executor's, hold at once. */
  public record Fetch(
      @Key(
              name = "fetch.window.blocks",
              value = "1024",
              min = "1",
              max = "1048576",
              since = "0.2.0",
              doc = "Maximum number of blocks of one owner that a reader holds under one lease.")
          int windowBlocks,
      @Key(
              name = "fetch.window.size",
              value = "48m",
              min = "64k",
              max = "1t",
              since = "0.2.0",
              doc =
                  "Size of the receive buffers that one reader reserves for blocks it cannot read in place. "
                      + "With a GPU, also the size of the rows that it reads in place under one lease.")
          long windowSize,
      @Key(
              name = "fetch.receiveBuffers",
              formerly = "fetch.landing.size",
              value = "512m",
              min = "64k",
              max = "1t",
              since = "0.3.0",
              doc =
                  "Maximum size of the receive buffers of an executor's readers. "
                      + "Also the maximum that an owner sends to all readers concurrently.")
          long receiveBuffers) {}

  /** Shuffles of the RAPIDS Accelerator. */
  public record Rapids(
      @Key(
              name = "rapids.enabled",
              value = "true",
              since = "0.2.0",
              doc =
                  "Whether shuffles of the RAPIDS Accelerator keep their blocks in GPU memory."
                      + " Requires both its plugin and io.zerohop.spark.ZerohopPlugin in"
                      + " `spark.plugins`.")
          boolean enabled,
      @Key(
              name = "rapids.batch.size",
              value = "512m",
              min = "1m",
              max = "1g",
              since = "0.2.0",
              doc =
                  "Target size of the batches that readers pass to RAPIDS, which is also what they"
                      + " gather at once from all owners.")
          long batchSize,
      @Key(
              name = "rapids.kudo.enabled",
              value = "true",
              since = "0.2.0",
              doc =
                  "Whether batches of RAPIDS are split by its GPU serializer (Kudo), whose cost does"
                      + " not grow with the number of partitions, where the exchange's partitioning"
                      + " and types allow. Can be set per session.")
          boolean kudo,
      @Key(
              name = "rapids.pack.size",
              value = "64m",
              min = "64k",
              max = "1g",
              since = "0.2.0",
              doc =
                  "Bytes of a RAPIDS map task that are packed by one launch. The task holds as much"
                      + " memory until then.")
          long packSize,
      @Key(
              name = "rapids.coalesce.size",
              value = "256m",
              min = "0",
              max = "16g",
              since = "0.3.0",
              doc =
                  "Size up to which reduce tasks are coalesced in stages whose operators all run on"
                      + " the GPU ([which](tuning.md#few-large-reduce-tasks-on-gpus)). 0 leaves"
                      + " Spark's tasks as they are. Can be set per session.")
          long coalesceSize) {}

  /** The pool in GPU memory, and copies there. */
  public record DeviceMemory(
      @Key(
              name = "device.pool.size",
              value = "auto",
              min = "1m",
              max = "16t",
              since = "0.2.0",
              doc =
                  "Maximum GPU memory per executor for shuffle blocks; RAPIDS leaves it free"
                      + " (spark.rapids.memory.gpu.reserve). `auto` is a fifth of the smallest GPU."
                      + " Blocks that do not fit go to host memory.")
          long poolSize,
      @Key(
              name = "device.pool.borrow",
              value = "true",
              since = "0.3.0",
              doc =
                  "Whether an executor whose pool is nearly full borrows GPU memory of others of its"
                      + " node, and lends them up to half of its own pool"
                      + " ([how](memory.md#borrowed-gpu-memory)).")
          boolean poolBorrow,
      @Key(
              name = "device.segment.size",
              value = "512m",
              min = "2m",
              max = "1g",
              since = "0.2.0",
              doc =
                  "Size of the segments by which the pool in GPU memory grows. Peers map each"
                      + " once.")
          long segmentSize,
      @Key(
              name = "device.window.size",
              value = "512m",
              min = "64k",
              max = "1t",
              since = "0.2.0",
              doc =
                  "Maximum bytes of one owner's blocks that a reader on the GPU looks up under one"
                      + " lease.")
          long windowSize,
      @Key(
              name = "device.timeout",
              value = "2min",
              min = "1ms",
              since = "0.2.0",
              doc =
                  "Timeout for copies on the GPU, which queue behind the kernels of queries. Also"
                      + " the time after which an incomplete request of path sent is dropped.")
          Duration timeout,
      @Key(
              name = "device.asyncCommit",
              value = "true",
              since = "0.2.0",
              doc =
                  "Whether a map output in GPU memory is published once the GPU has accepted its"
                      + " copies, before they have ended. A reader that comes earlier waits for"
                      + " them on its own GPU.")
          boolean asyncCommit) {}

  /** The choices for the compression of sent blocks. */
  public enum SentCodec {
    AUTO,
    NONE,
    LZ4,
    ZSTD
  }

  /** The kinds of memory that blocks of rows lie in. */
  public enum TestDevice {
    HOST,
    CUDA
  }

  /**
   * Reads a configuration.
   *
   * @param texts the text of a key, by its full name; absent if it is not set
   * @throws IllegalArgumentException naming the key, its text and what is expected
   */
  public static Config read(final UnaryOperator<@Nullable String> texts) {
    return Keys.read(texts);
  }

  /** Returns what holds where nothing is set. */
  public static Config defaults() {
    return read(key -> null);
  }

  /**
   * Returns this configuration with another value of one key. Bounds are for users and not checked.
   *
   * @param name of the key, without {@link Keys#PREFIX}
   * @param value of the component's type; any {@link Number} for numbers
   */
  public Config with(final String name, final Object value) {
    return Keys.with(this, name, value);
  }

  /** Declares the key that a component's value is read from. */
  @Retention(RetentionPolicy.RUNTIME)
  @Target(ElementType.RECORD_COMPONENT)
  @interface Key {
    /** Returns its name without {@link Keys#PREFIX}. */
    String name();

    /** Returns the name that it had, which still works; empty if it had no other. */
    String formerly() default "";

    /** Returns the default as a user would write it. */
    String value();

    /** Returns the smallest value; empty if there is none. */
    String min() default "";

    /** Returns the largest value; empty if there is none. */
    String max() default "";

    /** Returns the release that had it first. */
    String since();

    /** Returns what it does, for the page. */
    String doc();
  }
}
