package io.zerohop.spark.rapids.setup;

import com.nvidia.spark.rapids.ShimLoader;
import io.zerohop.device.Message;
import io.zerohop.spark.conf.RapidsKeys;
import io.zerohop.spark.log.SparkCode;
import io.zerohop.spark.log.UnusableException;
import io.zerohop.spark.rapids.api.RapidsClasses;
import org.apache.spark.SparkConf;
import org.apache.spark.SparkEnv;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Makes RAPIDS accept Zerohop as a manager that it may pass GPU batches to. It knows only its own,
 * by the name that is set when its shuffle environment is made; so the environment is made once
 * more while that name is set. To be called after RAPIDS' own plugin has started, in the driver,
 * which plans, and in executors, where single partitions are asked about again.
 */
public final class RapidsLatch {
  private static final Logger LOG = LoggerFactory.getLogger(RapidsLatch.class);
  private static final String MANAGER = "spark.shuffle.manager";

  /** So often an executor tries to look how cudf packs tables. */
  private static final int MAX_LOOKS = 3;

  private static int looks;

  /** Why it could not be closed in this process; absent if it could, or was not tried. */
  private static volatile @Nullable RuntimeException failure;

  private RapidsLatch() {}

  /**
   * Does so in an executor, where Spark only logs what plugins throw, and looks how cudf packs
   * tables there. Not for two threads at a time.
   *
   * @return whether all is done; else it is to be called again at another task
   */
  @SuppressWarnings("StaticAssignmentOfThrowable") // It is the cause of all that fail later.
  public static boolean closeInExecutor(final SparkEnv env) {
    try {
      if (looks == 0) {
        close(env);
      }
      looks++;
      return LayoutCheck.run(RapidsClasses.get(), looks == MAX_LOOKS) || looks == MAX_LOOKS;
    } catch (final RuntimeException | LinkageError e) {
      failure = e instanceof RuntimeException known ? known : new IllegalStateException(e);
      SparkCode.LATCH_FAILED
          .says("GPU shuffles will fail in this executor")
          .because(e)
          .error(LOG, e);
      return true;
    }
  }

  /**
   * Makes sure that an executor may shuffle RAPIDS' batches.
   *
   * @throws IllegalStateException if the latch could not be closed in it
   */
  public static void check() {
    final RuntimeException cause = failure;
    if (cause != null) {
      throw new UnusableException(Message.of(cause), cause);
    }
  }

  /**
   * Does so.
   *
   * @throws IllegalStateException if RAPIDS would not use GPU shuffles even so: its plans would not
   *     fit what is shuffled
   */
  public static void close(final SparkEnv env) {
    final SparkConf conf = env.conf();
    final boolean usesGpu;
    synchronized (RapidsLatch.class) {
      final String ours = conf.get(MANAGER);
      conf.set(MANAGER, ShimLoader.getRapidsShuffleManagerClass());
      try {
        usesGpu = RapidsClasses.get().initShuffleEnv(conf);
      } finally {
        conf.set(MANAGER, ours);
      }
    }
    if (!usesGpu) {
      throw new UnusableException(
          Message.of(
                  "RAPIDS does not use GPU shuffles although "
                      + RapidsMode.MODE
                      + "="
                      + RapidsKeys.get(conf, RapidsMode.MODE, ""))
              .remedy(
                  "see whether spark.rapids.sql.enabled or spark.rapids.shuffle.enabled is false;"
                      + " set spark.zerohop.rapids.enabled=false to go on without"));
    }
    LOG.info("Zerohop: RAPIDS passes its batches in GPU memory");
  }
}
