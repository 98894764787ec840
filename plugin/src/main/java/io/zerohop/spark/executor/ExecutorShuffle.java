package io.zerohop.spark.executor;

import io.zerohop.device.ZerohopException;
import io.zerohop.device.posix.Clock;
import io.zerohop.device.posix.Housekeeping;
import io.zerohop.shuffle.ShuffleNode;
import io.zerohop.shuffle.block.BlockPath;
import io.zerohop.shuffle.block.Location;
import io.zerohop.shuffle.conf.Config;
import io.zerohop.shuffle.conf.Config.TestDevice;
import io.zerohop.shuffle.fetch.Fetches;
import io.zerohop.shuffle.keeper.KeptTransport;
import io.zerohop.shuffle.pool.Tier;
import io.zerohop.shuffle.transport.SharedTransfers;
import io.zerohop.shuffle.transport.Transport.FallbackTransport;
import io.zerohop.shuffle.transport.samenode.Keeping;
import io.zerohop.shuffle.write.MapOutput;
import io.zerohop.spark.conf.KeeperReach;
import io.zerohop.spark.conf.ZerohopConf;
import io.zerohop.spark.control.SparkControlChannel;
import io.zerohop.spark.driver.LiveShuffles;
import io.zerohop.spark.keeper.KeeperStart;
import io.zerohop.spark.keeper.KeptId;
import io.zerohop.spark.keeper.KeptOutputs;
import io.zerohop.spark.log.SparkCode;
import io.zerohop.spark.metrics.ExecutorMetrics;
import io.zerohop.spark.outputfiles.MapOutputFiles;
import io.zerohop.spark.rapids.RapidsShuffle;
import io.zerohop.spark.rapids.setup.RapidsLatch;
import io.zerohop.spark.rapids.setup.RapidsMode;
import io.zerohop.spark.rows.MapOutputBuffer.PagePool;
import io.zerohop.spark.staged.BlockTransferTransport;
import io.zerohop.spark.staged.ZerohopBlockResolver;
import io.zerohop.spark.watch.ExecutorWatch;
import java.time.Duration;
import java.util.HashMap;
import java.util.HashSet;
import java.util.Map;
import java.util.Set;
import java.util.function.Consumer;
import java.util.function.IntConsumer;
import java.util.function.Supplier;
import java.util.function.UnaryOperator;
import org.apache.spark.ShuffleDependency;
import org.apache.spark.SparkConf;
import org.apache.spark.SparkEnv;
import org.apache.spark.storage.BlockManagerId;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import scala.Option;

/**
 * Zerohop in one executor, or in a driver that runs tasks: its blocks in memory, its files and its
 * metrics. Started when a first task brings a handle, which carries the secret.
 *
 * <p>An executor whose blocks cannot be in memory (no native library for its system, no usable
 * socket folder) says so once and keeps its map outputs in files; one that has a GPU and cannot
 * have them there keeps them in host memory. The job goes on. Thread safe.
 */
public final class ExecutorShuffle implements AutoCloseable {
  private static final Logger LOG = LoggerFactory.getLogger(ExecutorShuffle.class);

  /** Threads that may wait for connections at the same time, where there are few cores. */
  private static final int MIN_ASKING = 8;

  private final SparkEnv env;
  private final Config conf;
  private final @Nullable ShuffleNode node;
  private final Fetches fetches;
  private final MapOutputFiles files;
  private final PagePool pages;
  private final Runnable unshareMemory;

  /** The node's, if there is one. */
  private final Housekeeping housekeeping;

  private final OrphanedShuffles orphans;

  private final ExecutorWatch watch;
  private final ExecutorMetrics metrics;
  private final BlockManagerId location;

  /** Absent without a keeper. */
  private final @Nullable KeeperStart keeper;

  private final SharedTransfers transport;

  /** Absent without a keeper. */
  private final @Nullable KeptTransport kept;

  /** The location of outputs by the keeper's port; made anew for another keeper. */
  private volatile @Nullable KeptPlace keptPlace;

  private final Thread atExit = new Thread(this::closeAtExit, "zerohop-exit");

  private record KeptPlace(int keeperPort, BlockManagerId location) {}

  private ExecutorShuffle(
      final SparkEnv env,
      final SparkConf spark,
      final Config conf,
      final @Nullable ShuffleNode node,
      final Fetches fetches,
      final ZerohopBlockResolver resolver,
      final byte[] secret,
      final MapOutputFiles files,
      final IntConsumer drop,
      final ExecutorWatch watch) {
    this.env = env;
    this.conf = conf;
    this.node = node;
    this.fetches = fetches;
    this.files = files;
    this.watch = watch;
    this.pages = new PagePool(conf.writeBuffer() * Runtime.getRuntime().availableProcessors());
    this.location =
        locationOf(env.blockManager().blockManagerId(), node == null ? null : node.location());
    final BlockTransferTransport blocks =
        new BlockTransferTransport(
            env,
            resolver,
            spark.getSizeAsBytes("spark.network.maxRemoteBlockSizeFetchToMem", "200m"));
    this.kept = KeeperReach.isSet(spark) ? keptTransport(blocks, env, spark, conf, secret) : null;
    this.transport = newTransport(blocks, kept == null ? blocks : kept, spark);
    this.metrics = new ExecutorMetrics(fetches);
    if (node != null) {
      metrics.watch(node);
    }
    metrics.watch(transport);
    this.unshareMemory =
        node != null && node.hasGpu() && RapidsMode.isActive(spark)
            ? RapidsShuffle.shareMemory(spark, node)
            : () -> {};
    metrics.watch(files);
    env.metricsSystem().registerSource(metrics);
    this.housekeeping = node == null ? new Housekeeping(Clock.system()) : node.housekeeping();
    this.orphans = askForOrphans(env, spark, conf, node, files, drop, housekeeping);
    this.keeper =
        node != null && KeeperReach.isSet(spark) && conf.paths().contains(BlockPath.PEER)
            ? KeeperStart.begin(env, spark, node, secret)
            : null;
    if (node != null && keeper != null) {
      metrics.watchKeeper(node, keeper::stats);
    }
    watch.begin(env, spark, metrics::value, keeper == null ? null : keeper::stats, housekeeping);
    Runtime.getRuntime().addShutdownHook(atExit);
  }

  private static OrphanedShuffles askForOrphans(
      final SparkEnv env,
      final SparkConf spark,
      final Config conf,
      final @Nullable ShuffleNode node,
      final MapOutputFiles files,
      final IntConsumer drop,
      final Housekeeping housekeeping) {
    final OrphanedShuffles orphans =
        new OrphanedShuffles(
            () -> {
              final Set<Integer> held = new HashSet<>(files.shuffles());
              if (node != null) {
                held.addAll(node.shuffles());
              }
              return held;
            },
            shuffles -> {
              final Map<Integer, Long> known = LiveShuffles.ask(env, spark, shuffles);
              if (node != null) {
                final Map<Integer, Long> finished = new HashMap<>(known);
                finished.values().removeIf(nanos -> nanos < 0);
                node.finished(finished);
              }
              return known.keySet();
            },
            drop,
            conf.orphansInterval(),
            housekeeping);
    if (node != null) {
      node.onPressure(orphans::hurry);
    }
    return orphans;
  }

  private static KeptTransport keptTransport(
      final BlockTransferTransport blocks,
      final SparkEnv env,
      final SparkConf spark,
      final Config conf,
      final byte[] secret) {
    final byte[] own = secret.clone();
    return new KeptTransport(
        blocks,
        blocks::isOwn,
        () -> new SparkControlChannel(spark, conf, env.securityManager(), null, own, null),
        source -> KeptOutputs.tellNotReached(env.rpcEnv(), spark, source.executorId()),
        conf.connectTimeout(),
        Clock.system());
  }

  private static SharedTransfers newTransport(
      final BlockTransferTransport blocks, final FallbackTransport shared, final SparkConf conf) {
    final int threads = Math.max(MIN_ASKING, Runtime.getRuntime().availableProcessors());
    return new SharedTransfers(
        shared,
        source -> !blocks.isOwn(source),
        threads,
        NodeStart.stagedTimeout(conf).dividedBy(2),
        Clock.system());
  }

  /**
   * Starts Zerohop in this process.
   *
   * @param resolver serves this executor's own files
   * @param drop forgets a shuffle that the driver has dropped
   * @param watch receives what this executor does with shuffles; closed with it
   */
  public static ExecutorShuffle start(
      final SparkEnv env,
      final SparkConf conf,
      final byte[] secret,
      final ZerohopBlockResolver resolver,
      final MapOutputFiles files,
      final IntConsumer drop,
      final ExecutorWatch watch) {
    final Config keys = ZerohopConf.of(conf);
    final NodeStart starter =
        new NodeStart(env, conf, keys, secret, files, resolver.uploads(), watch);
    final ShuffleNode node = starter.start();
    return new ExecutorShuffle(
        env, conf, keys, node, starter.fetches(node), resolver, secret, files, drop, watch);
  }

  private static BlockManagerId locationOf(
      final BlockManagerId own, final @Nullable Location memory) {
    return memory == null
        ? own
        : BlockManagerId.apply(
            own.executorId(), own.host(), own.port(), Option.apply(memory.encode()));
  }

  /**
   * Begins a map output, for the caller to close.
   *
   * @param ofRows whether rows are written, which go to host memory but for tests
   */
  public MapOutput newOutput(
      final ShuffleDependency<?, ?, ?> dependency, final long mapId, final boolean ofRows) {
    final boolean onGpu =
        ofRows && node != null && node.hasGpu() && conf.testDevice() == TestDevice.CUDA;
    return files.newOutput(
        node,
        dependency.shuffleId(),
        mapId,
        dependency.partitioner().numPartitions(),
        onGpu ? Tier.DEVICE : Tier.HOST);
  }

  /** This executor's blocks in memory, or null if it has none. */
  public @Nullable ShuffleNode node() {
    return node;
  }

  /**
   * Returns the node that has RAPIDS' batches in GPU memory; absent if they are kept on the host.
   *
   * @throws IllegalStateException if RAPIDS itself does not take part in this executor
   */
  public @Nullable ShuffleNode gpuNode() {
    RapidsLatch.check();
    return node != null && node.hasGpu() ? node : null;
  }

  /** The fetches of this executor's readers. */
  public Fetches fetches() {
    return fetches;
  }

  public Config conf() {
    return conf;
  }

  /**
   * Returns the location for the map status of an output: this executor's block manager and the
   * address of its memory. If a keeper holds the output, by a name that Spark does not take for
   * this executor, so that the output outlives it. May wait for the keeper, for a moment.
   */
  public BlockManagerId location(final int shuffleId, final long mapId) {
    if (keeper == null || node == null) {
      return location;
    }
    final int port = node.keeperPort(shuffleId, mapId);
    return port == Keeping.NOT_KEPT ? location : keptPlace(node, port);
  }

  private BlockManagerId keptPlace(final ShuffleNode owner, final int keeperPort) {
    final KeptPlace known = keptPlace;
    if (known != null && known.keeperPort == keeperPort) {
      return known.location;
    }
    final KeptPlace made =
        new KeptPlace(
            keeperPort, KeptId.of(locationOf(location, owner.location().withKeeper(keeperPort))));
    keptPlace = made;
    return made.location;
  }

  public PagePool pages() {
    return pages;
  }

  public ExecutorWatch watch() {
    return watch;
  }

  public FallbackTransport transport() {
    return transport;
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
    final String what = "the shared memory of executor " + env.executorId();
    close(held -> LateClose.of(what, held, Clock.system()));
  }

  /** No task ends any more, and the memory goes with the process. */
  private void closeAtExit() {
    close(ShuffleNode::close);
  }

  /**
   * @param memory closes the node, if there is one
   */
  private void close(final Consumer<ShuffleNode> memory) {
    try {
      orphans.close();
      if (keeper != null) {
        keeper.close();
      }
      watch.close();
      transport.close();
      if (kept != null) {
        kept.close();
      }
      unshareMemory.run();
      if (node == null) {
        housekeeping.close();
      } else {
        memory.accept(node);
      }
    } catch (final RuntimeException e) {
      SparkCode.CLOSE_FAILED
          .says("could not close cleanly")
          .at("executor " + env.executorId())
          .because(e)
          .warn(LOG, e);
    } finally {
      pages.close();
    }
  }

  /**
   * Drops the shuffles that the driver has dropped without this executor's knowledge. Spark tells
   * only registered block managers, once, and an executor that somebody took for dead has none
   * until its next heartbeat. So the driver is asked now and then.
   *
   * <p>A shuffle goes when two answers in a row, a period apart, do not have it. One is not enough:
   * Spark may compute a shuffle again that it cleaned up, and between the question and the drop its
   * new outputs might come in. Without an answer nothing goes. Should a live shuffle go
   * nevertheless, its map tasks run again.
   *
   * <p>The same answers say which shuffles are finished. So the driver is also asked when a pool is
   * nearly full, and nothing goes by what it says then.
   */
  static final class OrphanedShuffles implements AutoCloseable {
    private static final Logger LOG = LoggerFactory.getLogger(OrphanedShuffles.class);

    private final Supplier<Set<Integer>> held;
    private final UnaryOperator<Set<Integer>> live;
    private final IntConsumer drop;
    private final Runnable question = this::askOnceMore;

    /** Absent if there is no thread for it. */
    private final Housekeeping.@Nullable Chore asking;

    /** Those that the last answer did not have. Never used by two threads at once. */
    private Set<Integer> unknown = Set.of();

    /**
     * Begins to ask.
     *
     * @param held the shuffles of which this executor holds map outputs
     * @param live those of some shuffles that the driver knows; may fail, and waits a limited time
     * @param drop forgets one
     * @param housekeeping asks in each period in which this executor holds a shuffle
     */
    OrphanedShuffles(
        final Supplier<Set<Integer>> held,
        final UnaryOperator<Set<Integer>> live,
        final IntConsumer drop,
        final Duration period,
        final Housekeeping housekeeping) {
      this.held = held;
      this.live = live;
      this.drop = drop;
      Housekeeping.Chore chore = null;
      try {
        chore = housekeeping.everyLong("orphans", period, () -> !held.get().isEmpty(), this::round);
      } catch (final ZerohopException e) {
        SparkCode.ORPHANS_NOT_ASKED
            .says(
                "cannot ask the driver which shuffles are alive; a shuffle whose removal is lost"
                    + " keeps its memory")
            .because(e)
            .warn(LOG, e);
      }
      asking = chore;
    }

    /** Has the driver asked once more, by the thread that asks anyway. Does not wait. */
    void hurry() {
      if (asking != null) {
        asking.soon(question);
      }
    }

    private void askOnceMore() {
      try {
        LOG.debug("between rounds, the driver does not know {}", missing());
      } catch (final Exception e) {
        // As below. Until there is an answer, what is known stays.
        LOG.debug("the driver did not say which shuffles are finished", e);
      }
    }

    private void round() {
      try {
        final Set<Integer> missing = missing();
        final Set<Integer> twice = new HashSet<>(missing);
        twice.retainAll(unknown);
        missing.removeAll(twice);
        unknown = missing;
        for (final int shuffleId : twice) {
          LOG.info("Zerohop: dropped shuffle {}, which the driver no longer knows", shuffleId);
          drop.accept(shuffleId);
        }
      } catch (final Exception e) {
        // Scala throws what it does not declare. A failure must not end the rounds.
        LOG.debug("the driver was not asked which shuffles live; the next round asks again", e);
      }
    }

    /** Asks the driver; returns those that it does not know. */
    private Set<Integer> missing() {
      final Set<Integer> asked = held.get();
      final Set<Integer> missing = new HashSet<>(asked);
      if (!asked.isEmpty()) {
        missing.removeAll(live.apply(asked));
      }
      return missing;
    }

    /** Asks no more, and waits a limited time for the question under way. Idempotent. */
    @Override
    public void close() {
      if (asking != null) {
        asking.cancel();
        asking.close();
      }
    }
  }
}
