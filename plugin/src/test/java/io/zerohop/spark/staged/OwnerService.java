package io.zerohop.spark.staged;

import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.function.Function;
import org.apache.logging.log4j.Level;
import org.apache.logging.log4j.core.config.Configurator;
import org.apache.spark.SparkEnv;
import org.apache.spark.TaskContext;
import org.apache.spark.network.BlockDataManager;
import org.apache.spark.network.buffer.ManagedBuffer;
import org.apache.spark.network.client.StreamCallbackWithID;
import org.apache.spark.network.netty.NettyBlockTransferService;
import org.apache.spark.network.shuffle.BlockFetchingListener;
import org.apache.spark.network.shuffle.checksum.Cause;
import org.apache.spark.storage.BlockId;
import org.apache.spark.storage.BlockManagerId;
import org.apache.spark.storage.StorageLevel;
import org.junit.jupiter.api.extension.AfterAllCallback;
import org.junit.jupiter.api.extension.BeforeAllCallback;
import org.junit.jupiter.api.extension.ExtensionContext;
import scala.Option;
import scala.reflect.ClassTag;

/**
 * Spark's block transfer service of another executor, in this process and at a port of its own, for
 * the tests of one class. Spark's client, which is that of the executor under test, keeps one
 * connection to it: what a test opens and does not close is not Spark's.
 */
final class OwnerService implements BeforeAllCallback, AfterAllCallback {
  static final String EXECUTOR = "owner";
  private static final String HOST = "127.0.0.1";
  private static final long LIMIT_SECONDS = 60;

  /** Logs a stack at both ends for each block that fails, of which these tests have thousands. */
  private static final String NETWORK = "org.apache.spark.network";

  private NettyBlockTransferService service;
  private volatile Function<BlockId, ManagedBuffer> blocks = OwnerService::nobody;

  @Override
  public void beforeAll(final ExtensionContext tests) throws InterruptedException {
    Configurator.setLevel(NETWORK, Level.OFF);
    start();
  }

  @Override
  public void afterAll(final ExtensionContext tests) {
    service.close();
    Configurator.setLevel(NETWORK, Level.INFO);
  }

  /** From now on these blocks are served; one that cannot be had throws. */
  void serve(final Function<BlockId, ManagedBuffer> served) {
    blocks = served;
  }

  /** From now on no blocks are served. */
  void serveNothing() {
    blocks = OwnerService::nobody;
  }

  private static ManagedBuffer nobody(final BlockId blockId) {
    throw new IllegalStateException("nobody serves " + blockId);
  }

  BlockManagerId address() {
    return BlockManagerId.apply(EXECUTOR, HOST, service.port(), Option.empty());
  }

  /** From now on nobody answers at the address that it had. It has another one for who comes. */
  void move() {
    service.close();
    try {
      start();
    } catch (final InterruptedException e) {
      throw new AssertionError(e);
    }
  }

  private void start() throws InterruptedException {
    final SparkEnv env = SparkEnv.get();
    service =
        new NettyBlockTransferService(
            env.conf(),
            env.securityManager(),
            env.serializerManager(),
            HOST,
            HOST,
            0,
            2,
            env.blockManager().master().driverEndpoint());
    service.init(new Blocks());
    connect(env);
  }

  /** Asks for a block that nobody has. */
  private void connect(final SparkEnv env) throws InterruptedException {
    final CountDownLatch answered = new CountDownLatch(1);
    final BlockFetchingListener listener =
        new BlockFetchingListener() {
          @Override
          public void onBlockFetchSuccess(final String blockId, final ManagedBuffer data) {}

          @Override
          public void onBlockFetchFailure(final String blockId, final Throwable cause) {
            answered.countDown();
          }
        };
    env.blockManager()
        .blockStoreClient()
        .fetchBlocks(
            HOST, service.port(), EXECUTOR, new String[] {"shuffle_0_0_0"}, listener, null);
    if (!answered.await(LIMIT_SECONDS, TimeUnit.SECONDS)) {
      throw new AssertionError("Spark's block transfer service does not answer");
    }
  }

  /** What Spark's block manager is to the service of an executor, as far as it serves shuffles. */
  private final class Blocks implements BlockDataManager {
    @Override
    public ManagedBuffer getLocalBlockData(final BlockId blockId) {
      return blocks.apply(blockId);
    }

    @Override
    public void releaseLock(final BlockId blockId, final Option<TaskContext> task) {}

    @Override
    public ManagedBuffer getHostLocalShuffleData(final BlockId blockId, final String[] dirs) {
      throw new UnsupportedOperationException();
    }

    @Override
    public String[] getLocalDiskDirs() {
      throw new UnsupportedOperationException();
    }

    @Override
    public Cause diagnoseShuffleBlockCorruption(
        final BlockId blockId, final long checksum, final String algorithm) {
      throw new UnsupportedOperationException();
    }

    @Override
    public boolean putBlockData(
        final BlockId blockId,
        final ManagedBuffer data,
        final StorageLevel level,
        final ClassTag<?> type) {
      throw new UnsupportedOperationException();
    }

    @Override
    public StreamCallbackWithID putBlockDataAsStream(
        final BlockId blockId, final StorageLevel level, final ClassTag<?> type) {
      throw new UnsupportedOperationException();
    }
  }
}
