package io.zerohop.spark.task;

import io.zerohop.device.Message;
import io.zerohop.device.ZerohopException;
import io.zerohop.shuffle.block.Block;
import io.zerohop.shuffle.fetch.BlockFetchException;
import io.zerohop.spark.log.SparkCode;
import java.util.concurrent.atomic.AtomicBoolean;
import org.apache.spark.TaskKilledException;
import org.apache.spark.shuffle.FetchFailedException;
import org.apache.spark.storage.BlockManagerId;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** Maps a failure's category to Spark's reaction; the only place that does. */
public final class FailureOutcome {
  /** A chain of causes may be a circle. */
  private static final int MAX_CAUSES = 100;

  private FailureOutcome() {}

  /**
   * Throws what Spark should see of a failure; never returns.
   *
   * <ul>
   *   <li>FETCH_FAILED: Spark's FetchFailedException with the exact location object of the map
   *       status, so that Spark runs that map task again
   *   <li>FATAL: an error that ends the executor
   *   <li>RETRY and FALLBACK: as it is; the task fails and Spark tries it again
   * </ul>
   */
  public static RuntimeException raise(final ZerohopException failure) {
    if (failure instanceof BlockFetchException fetch) {
      final Block block = fetch.block();
      throw FailureOutcome.<RuntimeException>unchecked(
          new FetchFailedException(
              (BlockManagerId) fetch.source().address(),
              block.shuffleId(),
              block.mapId(),
              block.mapIndex(),
              block.partition(),
              failure.getMessage(),
              failure));
    }
    if (failure.category() == ZerohopException.Category.FATAL) {
      throw new InternalError("Zerohop cannot go on in this executor: " + failure, failure);
    }
    throw failure;
  }

  /**
   * Throws what Spark should see of a failure while a block is read; never returns. Serializers
   * wrap what a block's stream throws in exceptions of their own. The failure is then that of the
   * block all the same, and no other attempt would get further.
   */
  public static RuntimeException raise(final Exception failure) {
    Throwable cause = failure;
    for (int depth = 0; cause != null && depth < MAX_CAUSES; depth++) {
      if (cause instanceof ZerohopException ours
          && (cause == failure || cause instanceof BlockFetchException)) {
        throw raise(ours);
      }
      cause = cause.getCause();
    }
    throw asItIs(failure);
  }

  /** Throws a failure to which nobody is to react; never returns. */
  public static RuntimeException asItIs(final Exception failure) {
    throw FailureOutcome.<RuntimeException>unchecked(failure);
  }

  /** Throws a checked exception where Scala, which has none, declares nothing. */
  @SuppressWarnings("unchecked")
  private static <E extends Throwable> RuntimeException unchecked(final Throwable failure)
      throws E {
    throw (E) failure;
  }

  /**
   * Handles a task in which Zerohop's code cannot be linked, although {@code SparkProbe} missed
   * nothing at start. The process leaves later shuffles of rows to Spark's own code, and the task
   * runs again. Of a process, as linking is. Thread safe.
   */
  public static final class LinkFailure {
    private static final Logger LOG = LoggerFactory.getLogger(LinkFailure.class);
    private static final String OURS = "io.zerohop.";
    private static final AtomicBoolean HAPPENED = new AtomicBoolean();

    private LinkFailure() {}

    /** Returns whether shuffles of rows are left to Spark in this process. */
    public static boolean happened() {
      return HAPPENED.get();
    }

    /**
     * Leaves shuffles of rows to Spark from now on, and says so once.
     *
     * @throws LinkageError the failure itself, if it is not of our code: users' code runs in our
     *     loops
     */
    public static void note(final LinkageError failure) {
      if (!isOurs(failure)) {
        throw failure;
      }
      if (!HAPPENED.getAndSet(true)) {
        SparkCode.LINK_FAILED
            .says(
                "Zerohop leaves shuffles of this executor to Spark's sort shuffle from now on, and"
                    + " tasks that run now run again")
            .because(failure)
            .remedy("compare the jars of driver and executors, and report the failure")
            .warn(LOG, failure);
      }
    }

    /**
     * Handles a task that has begun to read or write. Spark runs it again, and does not count this
     * attempt among its failures. Never returns.
     */
    public static RuntimeException raise(final LinkageError failure) {
      note(failure);
      throw new TaskKilledException(
          Message.of("runs again with Spark's sort shuffle").because(failure).text());
    }

    /** Returns whether it arose in code of ours; of the JDK are frames that load or bind for it. */
    private static boolean isOurs(final LinkageError failure) {
      for (final StackTraceElement frame : failure.getStackTrace()) {
        final String name = frame.getClassName();
        if (!name.startsWith("java.") && !name.startsWith("jdk.")) {
          return name.startsWith(OURS);
        }
      }
      return false;
    }
  }
}
