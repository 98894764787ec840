package io.zerohop.spark.executor;

import io.zerohop.device.Message;
import io.zerohop.device.Undo;
import io.zerohop.device.ZerohopException;
import io.zerohop.device.cuda.CudaDevice;
import io.zerohop.device.cuda.CudaDriver;
import io.zerohop.device.cuda.TopologyReader;
import io.zerohop.device.posix.Clock;
import io.zerohop.shuffle.ShuffleNode;
import io.zerohop.shuffle.conf.Config;
import io.zerohop.shuffle.conf.Config.TestDevice;
import io.zerohop.shuffle.fetch.Fetches;
import io.zerohop.spark.log.SparkCode;
import io.zerohop.spark.outputfiles.MapOutputFiles;
import io.zerohop.spark.rapids.RapidsShuffle;
import io.zerohop.spark.rapids.setup.RapidsMode;
import io.zerohop.spark.sent.Uploads;
import io.zerohop.spark.sizing.PoolSizing;
import io.zerohop.spark.watch.ExecutorWatch;
import java.time.Duration;
import java.util.function.Supplier;
import org.apache.spark.SparkConf;
import org.apache.spark.SparkEnv;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Starts an executor's memory for blocks with the best available kind: GPU memory if blocks are to
 * lie there, else host memory, else none. What cannot be had, and cannot a second later, is said
 * once, with the reason, and the job goes on without it. That holds for each failure of a start but
 * those after which the JVM itself cannot be relied on.
 */
final class NodeStart {
  private static final Logger LOG = LoggerFactory.getLogger(NodeStart.class);

  private final SparkEnv env;
  private final SparkConf spark;
  private final Config conf;
  private final byte[] secret;
  private final MapOutputFiles files;
  private final Uploads uploads;
  private final ExecutorWatch watch;
  private final PoolSizing.Plan pool;
  private final StartAttempts attempts =
      new StartAttempts(3, Duration.ofSeconds(1), Clock.system());

  /**
   * @param files take what has to leave memory
   * @param uploads bring what other executors send
   * @param watch hears of executors that are connected to, and of what cannot be had
   */
  NodeStart(
      final SparkEnv env,
      final SparkConf spark,
      final Config conf,
      final byte[] secret,
      final MapOutputFiles files,
      final Uploads uploads,
      final ExecutorWatch watch) {
    this.env = env;
    this.spark = spark;
    this.secret = secret;
    this.files = files;
    this.uploads = uploads;
    this.watch = watch;
    this.pool = PoolSizing.plan(spark, Runtime.getRuntime().maxMemory());
    this.conf = conf.with("pool.size", pool.bytes());
  }

  /** Starts it; null if this executor cannot hold blocks in memory. */
  @Nullable ShuffleNode start() {
    final Message warning = pool.warning();
    if (warning != null) {
      warning.warn(LOG);
      watch.advise("sizes", warning);
    }
    if (wantsGpu()) {
      try {
        return attempts.run("the start on the GPU", this::startOnGpu);
      } catch (final Throwable e) {
        throwFatal(e);
        missing(
            SparkCode.NO_GPU_MEMORY.says(
                "this executor holds no shuffle blocks in GPU memory; RAPIDS' tables are shuffled"
                    + " through the host"),
            e);
      }
    }
    try {
      return attempts.run("the start", this::startOnHost);
    } catch (final Throwable e) {
      throwFatal(e);
      missing(
          SparkCode.NO_SHARED_MEMORY.says(
              "this executor keeps shuffle blocks in files, not in memory"),
          e);
      return null;
    }
  }

  /** No memory is left, or the virtual machine is broken. */
  private static void throwFatal(final Throwable failure) {
    if (failure instanceof VirtualMachineError || failure instanceof ThreadDeath) {
      throw (Error) failure;
    }
  }

  private void missing(final Message what, final Throwable why) {
    final Message message = what.at("executor " + env.executorId()).because(why);
    message.warn(LOG, why);
    watch.advise("start", message.at(""));
  }

  /** Returns the fetches of an executor, for which {@link #start} may have given no node. */
  Fetches fetches(final @Nullable ShuffleNode node) {
    return node == null ? setup().stagedFetches() : node.fetches();
  }

  private boolean wantsGpu() {
    return RapidsMode.isActive(spark) || conf.testDevice() == TestDevice.CUDA;
  }

  private ShuffleNode startOnHost() {
    final ShuffleNode.Setup setup = setup();
    OtherNodes.configure(setup, env, spark, conf, secret, null);
    return start(setup, null);
  }

  private ShuffleNode startOnGpu() {
    final ShuffleNode.Setup setup = setup();
    final CudaDevice device =
        conf.fabric()
            ? CudaDevice.inFabric(gpu(), conf.cudaMultiprocessors())
            : new CudaDevice(gpu(), conf.cudaMultiprocessors());
    try (Undo undo = new Undo(device)) {
      LOG.info(
          "Zerohop: executor {} holds shuffle blocks on {}", env.executorId(), device.describe());
      setup.set("device.pool.size", PoolSizing.devicePoolBytes(spark));
      setup.gpu(device.uuid(), TopologyReader.read());
      OtherNodes.configure(setup, env, spark, conf, secret, device.pciAddress());
      undo.done();
      return start(setup, device); // It owns the device, also if this fails.
    }
  }

  private ShuffleNode start(final ShuffleNode.Setup setup, final @Nullable CudaDevice device) {
    final ShuffleNode node = ShuffleNode.start(setup, device);
    LOG.info(
        "Zerohop: executor {} holds shuffle blocks in up to {} MiB of shared memory",
        env.executorId(),
        pool.bytes() >> 20);
    return node;
  }

  /** The GPU that RAPIDS uses here, or one for tests, by its number. */
  private int gpu() {
    if (RapidsMode.isActive(spark)) {
      return RapidsShuffle.deviceId();
    }
    // Executors of one node take turns at its GPUs.
    final String digits = env.executorId().replaceAll("\\D", "");
    final int turn = digits.isEmpty() ? 0 : Integer.parseInt(digits);
    return turn % Math.max(1, CudaDriver.devices());
  }

  private ShuffleNode.Setup setup() {
    return new ShuffleNode.Setup(conf, spark.getAppId(), env.executorId(), secret)
        .neighbours()
        .stagedTimeout(stagedTimeout(spark))
        .coldStorage(files)
        .carrier(OtherNodes.carrier(env, spark, conf, uploads))
        .contacts(watch);
  }

  /**
   * Longer than Spark's own client takes to give a block up: all its tries and the waits between.
   */
  static Duration stagedTimeout(final SparkConf conf) {
    final long network = conf.getTimeAsSeconds("spark.network.timeout", "120s");
    final long pause = conf.getTimeAsSeconds("spark.shuffle.io.retryWait", "5s");
    final int tries = 1 + conf.getInt("spark.shuffle.io.maxRetries", 3);
    return Duration.ofSeconds(tries * (network + pause));
  }

  /**
   * Starts something once more if it failed by what may pass, as the category RETRY says: by a
   * folder that somebody removes while a socket is made in it. Everything else fails at once.
   *
   * @param most attempts, at least one
   * @param pause before each further one
   */
  record StartAttempts(int most, Duration pause, Clock clock) {
    private static final Logger LOG = LoggerFactory.getLogger(StartAttempts.class);

    /**
     * Makes them in this thread.
     *
     * @throws ZerohopException of the last attempt
     */
    <T> T run(final String what, final Supplier<T> start) {
      for (int attempt = 1; ; attempt++) {
        try {
          return start.get();
        } catch (final ZerohopException e) {
          if (e.category() != ZerohopException.Category.RETRY || attempt == most || !sleep()) {
            throw e;
          }
          LOG.info("Zerohop: {} failed, retrying: {}", what, e.getMessage());
        }
      }
    }

    /** False if the thread is interrupted, which stays set. */
    private boolean sleep() {
      try {
        clock.sleep(pause);
        return true;
      } catch (final InterruptedException e) {
        Thread.currentThread().interrupt();
        return false;
      }
    }
  }
}
