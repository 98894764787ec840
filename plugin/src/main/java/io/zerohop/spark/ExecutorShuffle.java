package io.zerohop.spark;

import io.zerohop.device.Topology;
import io.zerohop.device.ZerohopException;
import io.zerohop.device.cuda.CudaDevice;
import io.zerohop.device.cuda.CudaDriver;
import io.zerohop.device.cuda.TopologyReader;
import io.zerohop.shuffle.MapOutputWriter;
import io.zerohop.shuffle.NodeConfig;
import io.zerohop.shuffle.ShuffleNode;
import io.zerohop.shuffle.pool.Tier;
import io.zerohop.shuffle.transport.SharedTransfers;
import io.zerohop.shuffle.transport.StagedTransport;
import io.zerohop.spark.rapids.RapidsLatch;
import io.zerohop.spark.rapids.RapidsMode;
import io.zerohop.spark.rapids.RapidsShuffle;
import io.zerohop.spark.rows.PagePool;
import io.zerohop.spark.staged.BlockTransferTransport;
import io.zerohop.spark.staged.MapOutputFiles;
import io.zerohop.spark.staged.ZerohopBlockResolver;
import java.nio.file.Path;
import java.time.Duration;
import java.util.HashSet;
import java.util.Set;
import java.util.function.IntConsumer;
import org.apache.spark.MapOutputTrackerMaster;
import org.apache.spark.ShuffleDependency;
import org.apache.spark.SparkConf;
import org.apache.spark.SparkEnv;
import org.apache.spark.storage.BlockManagerId;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import scala.Option;

/**
 * Zerohop in one executor (or in a driver that runs tasks): its blocks in memory, its files and its
 * metrics. Started by the first task that has a handle, since the handle carries the secret.
 *
 * <p>An executor whose blocks cannot be in memory (no native library for its system, no usable
 * socket folder) says so once and keeps its map outputs in files; the job goes on. Thread safe.
 */
final class ExecutorShuffle implements AutoCloseable {
  private static final Logger LOG = LoggerFactory.getLogger(ExecutorShuffle.class);

  /** Threads that may wait for connections at the same time, where there are few cores. */
  private static final int MIN_ASKING = 8;

  private final SparkEnv env;
  private final SparkConf conf;
  private final ShuffleNode node;
  private final PagePool pages;
  private final Runnable unshareMemory;

  /** Null in the driver, which drops its shuffles itself. */
  private final OrphanedShuffles orphans;

  private final ExecutorMetrics metrics = new ExecutorMetrics();
  private final BlockManagerId location;
  private final SharedTransfers transport;
  private final Thread atExit = new Thread(this::closeAtExit, "zerohop-exit");

  private ExecutorShuffle(
      final SparkEnv env,
      final SparkConf conf,
      final ShuffleNode node,
      final ZerohopBlockResolver resolver,
      final MapOutputFiles files,
      final IntConsumer drop) {
    this.env = env;
    this.conf = conf;
    this.node = node;
    this.pages = new PagePool(writeBufferBytes() * Runtime.getRuntime().availableProcessors());
    this.location = locationOf(env.blockManager().blockManagerId(), node);
    this.transport = newTransport(env, conf, resolver);
    if (node != null) {
      metrics.watch(node);
    }
    metrics.watch(transport);
    this.unshareMemory =
        node != null && node.hasGpu() && RapidsMode.isActive(conf)
            ? RapidsShuffle.shareMemory(conf, node)
            : () -> {};
    metrics.watch(files);
    env.metricsSystem().registerSource(metrics);
    this.orphans = askForOrphans(env, conf, node, files, drop);
    Runtime.getRuntime().addShutdownHook(atExit);
  }

  private static OrphanedShuffles askForOrphans(
      final SparkEnv env,
      final SparkConf conf,
      final ShuffleNode node,
      final MapOutputFiles files,
      final IntConsumer drop) {
    if (env.mapOutputTracker() instanceof MapOutputTrackerMaster) {
      return null;
    }
    return new OrphanedShuffles(
        () -> {
          final Set<Integer> held = new HashSet<>(files.shuffles());
          if (node != null) {
            held.addAll(node.shuffles());
          }
          return held;
        },
        shuffles -> LiveShuffles.ask(env, conf, shuffles),
        drop,
        Duration.ofMillis(ZerohopConf.ORPHANS_INTERVAL.get(conf)));
  }

  private static SharedTransfers newTransport(
      final SparkEnv env, final SparkConf conf, final ZerohopBlockResolver resolver) {
    final BlockTransferTransport blocks =
        new BlockTransferTransport(
            env,
            resolver,
            conf.getSizeAsBytes("spark.network.maxRemoteBlockSizeFetchToMem", "200m"));
    final int threads = Math.max(MIN_ASKING, Runtime.getRuntime().availableProcessors());
    return new SharedTransfers(
        blocks, source -> !blocks.isOwn(source), threads, stagedLimit(conf).dividedBy(2));
  }

  /**
   * Starts Zerohop in this process.
   *
   * @param secret the application's secret
   * @param resolver serves this executor's own files
   * @param files writes them
   * @param drop forgets a shuffle that the driver has dropped
   */
  static ExecutorShuffle start(
      final SparkEnv env,
      final SparkConf conf,
      final byte[] secret,
      final ZerohopBlockResolver resolver,
      final MapOutputFiles files,
      final IntConsumer drop) {
    return new ExecutorShuffle(
        env, conf, startNode(env, conf, secret, files), resolver, files, drop);
  }

  private static ShuffleNode startNode(
      final SparkEnv env, final SparkConf conf, final byte[] secret, final MapOutputFiles files) {
    final String socketDir = ZerohopConf.SOCKET_DIR.get(conf);
    final long poolBytes = PoolSizing.poolBytes(conf);
    final NodeConfig.Builder config =
        NodeConfig.builder()
            .appId(conf.getAppId())
            .executorId(env.executorId())
            .socketBase(ZerohopConf.AUTO.equals(socketDir) ? null : Path.of(socketDir))
            .secret(secret)
            .poolBytes(poolBytes)
            .deviceWindowBytes(ZerohopConf.DEVICE_WINDOW_SIZE.get(conf))
            .segmentBytes(Math.min(ZerohopConf.SEGMENT_SIZE.get(conf), poolBytes))
            .keepEmpty(Duration.ofMillis(ZerohopConf.SEGMENT_IDLE.get(conf)))
            .checksum(ZerohopConf.CHECKSUM.get(conf))
            .paths(ZerohopConf.PATHS.get(conf))
            .connectLimit(Duration.ofMillis(ZerohopConf.CONNECT_TIMEOUT.get(conf)))
            .requestLimit(Duration.ofMillis(ZerohopConf.REQUEST_TIMEOUT.get(conf)))
            .stagedLimit(stagedLimit(conf))
            .deviceLimit(Duration.ofMillis(ZerohopConf.DEVICE_TIMEOUT.get(conf)))
            .windowBlocks(ZerohopConf.WINDOW_BLOCKS.get(conf))
            .windowBytes(ZerohopConf.WINDOW_SIZE.get(conf))
            .landingBytes(ZerohopConf.LANDING_SIZE.get(conf))
            .spillStart(ZerohopConf.SPILL_START.get(conf))
            .spillIdle(Duration.ofMillis(ZerohopConf.SPILL_IDLE.get(conf)))
            .coldStorage(files)
            .nodeId(ZerohopConf.NODE_ID.get(conf).trim())
            .ucxMode(ZerohopConf.UCX_MODE.get(conf));
    OtherNodes.configure(config, env, conf, secret);
    CudaDevice device = null;
    boolean handedOver = false;
    try {
      device = gpu(env, conf);
      if (device != null) {
        final long devicePool = PoolSizing.devicePoolBytes(conf);
        config.devicePoolBytes(devicePool);
        config.deviceSegmentBytes(Math.min(ZerohopConf.DEVICE_SEGMENT_SIZE.get(conf), devicePool));
        final String seen = TopologyReader.read().fingerprint();
        config.view(new Topology.View(env.executorId(), device.uuid(), seen));
      }
      final NodeConfig known = config.build();
      handedOver = true;
      final ShuffleNode node = ShuffleNode.start(known, device);
      LOG.info(
          "Zerohop: executor {} holds shuffle blocks in up to {} MiB of shared memory",
          env.executorId(),
          poolBytes >> 20);
      return node;
    } catch (final ZerohopException e) {
      LOG.warn(
          "Zerohop: executor {} keeps shuffle blocks in files, not in memory: {}",
          env.executorId(),
          e.getMessage(),
          e);
      return null;
    } finally {
      if (device != null && !handedOver) {
        device.close();
      }
    }
  }

  /** The GPU that RAPIDS uses here, or one for tests; null if blocks are not to lie on any. */
  private static CudaDevice gpu(final SparkEnv env, final SparkConf conf) {
    final int ordinal;
    if (RapidsMode.isActive(conf)) {
      ordinal = RapidsShuffle.deviceId();
    } else if (ZerohopConf.TEST_DEVICE.get(conf).equals("cuda")) {
      // Executors of one node take turns at its GPUs.
      final String digits = env.executorId().replaceAll("\\D", "");
      final int turn = digits.isEmpty() ? 0 : Integer.parseInt(digits);
      ordinal = turn % Math.max(1, CudaDriver.devices());
    } else {
      return null;
    }
    final CudaDevice device = new CudaDevice(ordinal, ZerohopConf.CUDA_MULTIPROCESSORS.get(conf));
    LOG.info(
        "Zerohop: executor {} holds shuffle blocks on {}", env.executorId(), device.describe());
    return device;
  }

  /**
   * Longer than Spark's own client takes to give a block up: all its tries and the waits between.
   */
  private static Duration stagedLimit(final SparkConf conf) {
    final long network = conf.getTimeAsSeconds("spark.network.timeout", "120s");
    final long pause = conf.getTimeAsSeconds("spark.shuffle.io.retryWait", "5s");
    final int tries = 1 + conf.getInt("spark.shuffle.io.maxRetries", 3);
    return Duration.ofSeconds(tries * (network + pause));
  }

  private static BlockManagerId locationOf(final BlockManagerId own, final ShuffleNode node) {
    return node == null
        ? own
        : BlockManagerId.apply(
            own.executorId(), own.host(), own.port(), Option.apply(node.location().encode()));
  }

  /** Begins a map output of rows, in host memory but for tests; null if there is none. */
  MapOutputWriter newRowsOutput(final ShuffleDependency<?, ?, ?> dependency, final long mapId) {
    if (node == null) {
      return null;
    }
    final Tier tier =
        node.hasGpu() && ZerohopConf.TEST_DEVICE.get(conf).equals("cuda") ? Tier.DEVICE : Tier.HOST;
    return node.newMapOutput(
        dependency.shuffleId(), mapId, dependency.partitioner().numPartitions(), tier);
  }

  /** This executor's blocks in memory, or null if it has none. */
  ShuffleNode node() {
    return node;
  }

  /**
   * The same for shuffles whose batches lie in GPU memory.
   *
   * @throws IllegalStateException if this executor could not have them; its log says why
   */
  ShuffleNode gpuNode() {
    RapidsLatch.check();
    if (node == null || !node.hasGpu()) {
      throw new IllegalStateException(
          "executor "
              + env.executorId()
              + " cannot shuffle in GPU memory (its log says why); set "
              + ZerohopConf.RAPIDS_ENABLED.key()
              + "=false to go on through host memory");
    }
    return node;
  }

  /** Longest time for copies on the GPU. */
  Duration deviceLimit() {
    return Duration.ofMillis(ZerohopConf.DEVICE_TIMEOUT.get(conf));
  }

  /** What goes into map statuses: this executor's block manager and how to reach its memory. */
  BlockManagerId location() {
    return location;
  }

  PagePool pages() {
    return pages;
  }

  ExecutorMetrics metrics() {
    return metrics;
  }

  StagedTransport transport() {
    return transport;
  }

  long writeBufferBytes() {
    return ZerohopConf.WRITE_BUFFER.get(conf);
  }

  /**
   * Ends Zerohop in this executor. What tasks still use is freed when they end, see {@link
   * LateClose}.
   */
  @Override
  public void close() {
    try {
      Runtime.getRuntime().removeShutdownHook(atExit);
    } catch (final IllegalStateException alreadyExiting) {
      LOG.debug("Closing while the process exits");
    }
    env.metricsSystem().removeSource(metrics);
    close(() -> LateClose.of("the shared memory of executor " + env.executorId(), node));
  }

  /** No task ends any more, and the memory goes with the process. */
  private void closeAtExit() {
    close(() -> node.close());
  }

  /**
   * @param memory closes the node, if there is one
   */
  private void close(final Runnable memory) {
    try {
      if (orphans != null) {
        orphans.close();
      }
      transport.close();
      unshareMemory.run();
      if (node != null) {
        memory.run();
      }
    } catch (final RuntimeException e) {
      LOG.warn("Zerohop could not close cleanly in executor {}", env.executorId(), e);
    } finally {
      pages.close();
    }
  }
}
