package io.zerohop.spark;

import io.zerohop.device.Message;
import io.zerohop.device.exchange.Hmac;
import io.zerohop.shuffle.ShuffleNode;
import io.zerohop.spark.compat.JarVersion;
import io.zerohop.spark.conf.Activation;
import io.zerohop.spark.conf.KeeperReach;
import io.zerohop.spark.conf.ZerohopConf;
import io.zerohop.spark.driver.LiveShuffles;
import io.zerohop.spark.executor.ExecutorShuffle;
import io.zerohop.spark.executor.Startup;
import io.zerohop.spark.keeper.KeptOutputs;
import io.zerohop.spark.log.UnusableException;
import io.zerohop.spark.metrics.ReadMetrics;
import io.zerohop.spark.metrics.ReadMetrics.PathAccumulators;
import io.zerohop.spark.outputfiles.MapOutputFiles;
import io.zerohop.spark.rapids.RapidsReader;
import io.zerohop.spark.rapids.RapidsShuffle;
import io.zerohop.spark.rapids.RapidsWriter;
import io.zerohop.spark.rows.RowsReader;
import io.zerohop.spark.rows.RowsWriter;
import io.zerohop.spark.staged.ZerohopBlockResolver;
import io.zerohop.spark.task.FailureOutcome.LinkFailure;
import io.zerohop.spark.task.MapTask;
import io.zerohop.spark.task.ReduceTask;
import io.zerohop.spark.watch.ExecutorWatch;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.Objects;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.function.Supplier;
import org.apache.spark.ShuffleDependency;
import org.apache.spark.SparkConf;
import org.apache.spark.SparkContext;
import org.apache.spark.SparkEnv;
import org.apache.spark.TaskContext;
import org.apache.spark.shuffle.BaseShuffleHandle;
import org.apache.spark.shuffle.BlockStoreShuffleReader;
import org.apache.spark.shuffle.IndexShuffleBlockResolver;
import org.apache.spark.shuffle.ShuffleBlockResolver;
import org.apache.spark.shuffle.ShuffleHandle;
import org.apache.spark.shuffle.ShuffleReadMetricsReporter;
import org.apache.spark.shuffle.ShuffleReader;
import org.apache.spark.shuffle.ShuffleWriteMetricsReporter;
import org.apache.spark.shuffle.ShuffleWriter;
import org.apache.spark.shuffle.sort.SortShuffleManager;
import org.apache.spark.storage.BlockId;
import org.apache.spark.storage.BlockManagerId;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import scala.Tuple2;
import scala.Tuple3;
import scala.collection.Iterator;
import scala.collection.Seq;

/**
 * The shuffle manager. Spark holds it by {@link ZerohopShuffleManager}, which any Java can load.
 *
 * <p>The driver decides for every shuffle whether it goes through Zerohop, and says so by the kind
 * of its handle; executors follow the handle. What does not go through Zerohop is left to Spark's
 * sort shuffle, which this class extends.
 *
 * <p>Thread safe.
 */
public final class MemoryShuffleManager extends SortShuffleManager {
  private static final Logger LOG = LoggerFactory.getLogger(MemoryShuffleManager.class);

  /** Long enough for a GPU's first use and a folder that others hold. */
  private static final Duration START_LIMIT = Duration.ofMinutes(2);

  private static final String ASIDE = "Zerohop has stepped aside in this executor";

  private final SparkConf conf;
  private final boolean active;

  /** The driver's alone: executors get it with a handle. */
  private final byte @Nullable [] secret;

  /** Absent where Zerohop has stepped aside. */
  private final @Nullable MapOutputFiles files;

  /** Absent where Zerohop has stepped aside. */
  private final @Nullable ZerohopBlockResolver resolver;

  private final int streamsLimit;
  private final AtomicBoolean answers = new AtomicBoolean();
  private final Startup<ExecutorShuffle> executor =
      new Startup<>("zerohop-start", START_LIMIT, ExecutorShuffle::close);

  /** Called by {@link ZerohopShuffleManager}, in the driver and in every executor. */
  public MemoryShuffleManager(final SparkConf conf, final boolean isDriver) {
    super(conf);
    this.conf = conf;
    this.active = Activation.check(conf, isDriver);
    this.secret =
        isDriver ? AppSecret.forHandles(conf.getBoolean("spark.authenticate", false)) : null;
    if (active) {
      final MapOutputFiles made = new MapOutputFiles();
      this.files = made;
      this.resolver =
          new ZerohopBlockResolver(
              (IndexShuffleBlockResolver) super.shuffleBlockResolver(), made, this::node);
    } else {
      this.files = null;
      this.resolver = null;
    }
    this.streamsLimit = conf.getInt("spark.shuffle.sort.bypassMergeThreshold", 200);
  }

  @Override
  public <K, V, C> ShuffleHandle registerShuffle(
      final int shuffleId, final ShuffleDependency<K, V, C> dependency) {
    if (!answers.getAndSet(true)) {
      // Not earlier: Spark makes this class before its SparkEnv.
      answer(dependency.rdd().context());
    }
    if (!active) {
      return super.registerShuffle(shuffleId, dependency);
    }
    final boolean gpu = RapidsShuffle.isGpuShuffle(dependency);
    if (gpu) {
      RapidsShuffle.advise(dependency);
    }
    return new ZerohopShuffleHandle<>(
        shuffleId,
        dependency,
        Objects.requireNonNull(secret, "the driver registers shuffles"),
        PathAccumulators.register(dependency.rdd().context()),
        gpu,
        gpu && RapidsShuffle.reportsRowChecksums(dependency));
  }

  /** Also where Zerohop has stepped aside: the tab says why. */
  private void answer(final SparkContext context) {
    final SparkEnv env = SparkEnv.get();
    if (active) {
      LiveShuffles.serve(context, env);
      if (KeeperReach.isSet(conf)) {
        KeptOutputs.follow(context, env);
      }
      LOG.info("Zerohop: this application's shuffles go through the memory of its executors");
    }
    if (ZerohopConf.of(conf).enabled()) {
      Watches.startTab(context, env);
    }
  }

  @Override
  @SuppressWarnings("unchecked")
  public <K, V> ShuffleWriter<K, V> getWriter(
      final ShuffleHandle handle,
      final long mapId,
      final TaskContext context,
      final ShuffleWriteMetricsReporter metrics) {
    if (!(handle instanceof ZerohopShuffleHandle)) {
      return super.getWriter(handle, mapId, context, metrics);
    }
    final ZerohopShuffleHandle<K, V, Object> ours = (ZerohopShuffleHandle<K, V, Object>) handle;
    if (ours.gpu()) {
      return newWriter(ours, mapId, context, metrics); // None of Spark's takes RAPIDS' batches.
    }
    if (!LinkFailure.happened()) {
      try {
        return newWriter(ours, mapId, context, metrics);
      } catch (final LinkageError e) {
        LinkFailure.note(e);
      }
    }
    // By a handle of Spark's own: its kind says whether rows are kept, and so have to be copied.
    return super.getWriter(
        super.registerShuffle(ours.shuffleId(), ours.dependency()), mapId, context, metrics);
  }

  private <K, V> ShuffleWriter<K, V> newWriter(
      final ZerohopShuffleHandle<K, V, Object> ours,
      final long mapId,
      final TaskContext context,
      final ShuffleWriteMetricsReporter metrics) {
    final ExecutorShuffle here = executor(ours);
    here.watch().writes(ours.shuffleId(), context);
    final MapTask task =
        new MapTask(mapId, context, metrics, () -> here.location(ours.shuffleId(), mapId));
    if (ours.gpu()) {
      return new RapidsWriter<>(
          ours.dependency(),
          task,
          () -> here.newOutput(ours.dependency(), mapId, false),
          here.gpuNode(),
          here.conf().device().timeout(),
          ours.rowChecksums(),
          here.conf().rapids().packSize());
    }
    return new RowsWriter<>(
        ours.dependency(),
        task,
        () -> here.newOutput(ours.dependency(), mapId, true),
        here.pages(),
        here.conf().writeBuffer(),
        streamsLimit);
  }

  @Override
  @SuppressWarnings("unchecked")
  public <K, C> ShuffleReader<K, C> getReader(
      final ShuffleHandle handle,
      final int startMapIndex,
      final int endMapIndex,
      final int startPartition,
      final int endPartition,
      final TaskContext context,
      final ShuffleReadMetricsReporter metrics) {
    if (!(handle instanceof ZerohopShuffleHandle)) {
      return super.getReader(
          handle, startMapIndex, endMapIndex, startPartition, endPartition, context, metrics);
    }
    final ZerohopShuffleHandle<K, Object, C> ours = (ZerohopShuffleHandle<K, Object, C>) handle;
    final Supplier<Iterator<Tuple2<BlockManagerId, Seq<Tuple3<BlockId, Object, Object>>>>> blocks =
        () ->
            SparkEnv.get()
                .mapOutputTracker()
                .getMapSizesByExecutorId(
                    handle.shuffleId(), startMapIndex, endMapIndex, startPartition, endPartition);
    final boolean batches =
        canUseBatchFetch(startPartition, endPartition, context)
            && ours.dependency().serializer().supportsRelocationOfSerializedObjects();
    if (ours.gpu()) {
      return newReader(ours, blocks.get(), batches, context, metrics);
    }
    if (!LinkFailure.happened()) {
      try {
        return newReader(ours, blocks.get(), batches, context, metrics);
      } catch (final LinkageError e) {
        LinkFailure.note(e);
      }
    }
    return newStagedReader(ours, blocks.get(), context, metrics);
  }

  private <K, C> ShuffleReader<K, C> newReader(
      final ZerohopShuffleHandle<K, Object, C> ours,
      final Iterator<Tuple2<BlockManagerId, Seq<Tuple3<BlockId, Object, Object>>>> blocks,
      final boolean batches,
      final TaskContext context,
      final ShuffleReadMetricsReporter metrics) {
    final ExecutorShuffle here = executor(ours);
    final ExecutorWatch.Reader watch = here.watch().reads(ours.shuffleId(), context);
    final ReadMetrics pathMetrics =
        new ReadMetrics(context, metrics, ours.accumulators(), watch, batches);
    final ReduceTask task = new ReduceTask(blocks, context, metrics, pathMetrics);
    if (ours.gpu()) {
      return new RapidsReader<>(
          ours.dependency(),
          task,
          here.fetches(),
          here.gpuNode(),
          here.conf().device().timeout(),
          here.transport(),
          here.conf().rapids().batchSize());
    }
    return new RowsReader<>(ours.dependency(), task, here.fetches(), here.transport());
  }

  /** Returns a reader of Spark's, for a process in which ours cannot be linked. */
  private static <K, C> ShuffleReader<K, C> newStagedReader(
      final ZerohopShuffleHandle<K, Object, C> ours,
      final Iterator<Tuple2<BlockManagerId, Seq<Tuple3<BlockId, Object, Object>>>> blocks,
      final TaskContext context,
      final ShuffleReadMetricsReporter metrics) {
    final SparkEnv env = SparkEnv.get();
    return new BlockStoreShuffleReader<>(
        (BaseShuffleHandle<K, Object, C>) ours,
        blocks,
        context,
        metrics,
        env.serializerManager(),
        env.blockManager(),
        env.mapOutputTracker(),
        false);
  }

  private ExecutorShuffle executor(final ZerohopShuffleHandle<?, ?, ?> handle) {
    return executor.get(maker(handle));
  }

  private Supplier<ExecutorShuffle> maker(final ZerohopShuffleHandle<?, ?, ?> handle) {
    final SparkEnv env = SparkEnv.get();
    JarVersion.check(handle.driverVersion(), JarVersion.own(), env.executorId());
    return () ->
        ExecutorShuffle.start(
            env,
            conf,
            AppSecret.resolve(handle.secret(), env),
            Objects.requireNonNull(resolver, ASIDE),
            Objects.requireNonNull(files, ASIDE),
            this::unregisterShuffle,
            Watches.ofExecutor(conf));
  }

  /**
   * Starts Zerohop in the background, in an executor to which a task has brought a handle. Spark
   * generates the task's code and opens its input meanwhile. Throws nothing: a task that asks for a
   * writer or reader gets the failure if it waits for this start, and else makes another one.
   */
  static void arrived(final ZerohopShuffleHandle<?, ?, ?> handle) {
    final SparkEnv env = SparkEnv.get();
    if (env == null || TaskContext.get() == null || LinkFailure.happened()) {
      return; // A driver may read its own handles, too.
    }
    try {
      if (env.shuffleManager() instanceof ZerohopShuffleManager entry
          && entry.manager() instanceof MemoryShuffleManager here
          && here.executor.made() == null) {
        here.executor.begin(here.maker(handle));
      }
    } catch (final RuntimeException | LinkageError e) {
      LOG.debug("Zerohop does not start before the first task asks for it", e);
    }
  }

  private @Nullable ShuffleNode node() {
    final ExecutorShuffle running = executor.made();
    return running == null ? null : running.node();
  }

  @Override
  public boolean unregisterShuffle(final int shuffleId) {
    final ShuffleNode node = node();
    if (node != null) {
      node.unregisterShuffle(shuffleId);
    }
    if (files != null) {
      files.unregisterShuffle(shuffleId);
    }
    return super.unregisterShuffle(shuffleId);
  }

  @Override
  public ShuffleBlockResolver shuffleBlockResolver() {
    return resolver != null ? resolver : super.shuffleBlockResolver();
  }

  @Override
  public void stop() {
    executor.stop();
    super.stop();
  }

  /**
   * The application's secret for the exchange of segments between executors of a node. With {@code
   * spark.authenticate} it is derived from Spark's secret, so it never travels; else the driver
   * draws 256 random bits, which every shuffle handle carries.
   */
  private static final class AppSecret {
    private static final int BYTES = 32;
    private static final byte[] PURPOSE =
        "zerohop segment exchange".getBytes(StandardCharsets.US_ASCII);

    private AppSecret() {}

    /** Returns the driver's secret for handles: random bits, or nothing if executors derive it. */
    static byte[] forHandles(final boolean authenticate) {
      if (authenticate) {
        return new byte[0];
      }
      return Hmac.random(BYTES);
    }

    /** The secret in force, from what a handle carried. */
    static byte[] resolve(final byte[] carried, final SparkEnv env) {
      if (carried.length > 0) {
        return carried;
      }
      final String key = env.securityManager().getSecretKey();
      if (key == null) {
        throw new UnusableException(
            Message.of(
                    "the driver has spark.authenticate on, but this executor has no Spark secret")
                .remedy("set spark.authenticate for executors as well"));
      }
      return Hmac.of(key.getBytes(StandardCharsets.UTF_8), PURPOSE);
    }
  }
}
