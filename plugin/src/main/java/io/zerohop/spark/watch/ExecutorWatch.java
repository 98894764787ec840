package io.zerohop.spark.watch;

import io.zerohop.device.Message;
import io.zerohop.device.posix.Housekeeping;
import io.zerohop.shuffle.block.Link;
import io.zerohop.shuffle.fetch.Fetches;
import io.zerohop.shuffle.keeper.KeeperStats;
import io.zerohop.shuffle.transport.ContactListener;
import java.util.function.Supplier;
import java.util.function.ToLongFunction;
import org.apache.spark.SparkConf;
import org.apache.spark.SparkEnv;
import org.apache.spark.TaskContext;
import org.jspecify.annotations.Nullable;

/**
 * Receives what an executor does with shuffles, for the tab: which executors it connects to, what
 * its tasks write and read, and which problems it has. The implementation is found by its class
 * name, so that shuffles do not depend on it. Made before the executor's memory starts. No call
 * waits. Thread safe.
 */
public interface ExecutorWatch extends ContactListener, AutoCloseable {
  /** Does nothing. */
  ExecutorWatch NONE = new ExecutorWatch() {};

  @Override
  default void met(
      final String executorId, final String how, final Link link, final long expected) {}

  /**
   * The executor has a problem, and goes on. May come before {@link #begin}.
   *
   * @param check the subject, in one word
   */
  default void advise(final String check, final Message warning) {}

  /**
   * The executor is about to run tasks. Called once.
   *
   * @param metrics the value now of a metric of this executor, by its key; 0 if it does not have it
   * @param keeper what the keeper of this node said last; null without keepers
   * @param housekeeping does what is periodic here
   */
  default void begin(
      final SparkEnv env,
      final SparkConf conf,
      final ToLongFunction<String> metrics,
      final @Nullable Supplier<KeeperStats> keeper,
      final Housekeeping housekeeping) {}

  /**
   * A task writes a shuffle. To be called before whatever the task closes at its end is registered,
   * which then closes first; so is {@link #reads}.
   */
  default void writes(final int shuffleId, final TaskContext task) {}

  /** A task reads a shuffle. Returns what counts one reader; a task may have many. */
  default Reader reads(final int shuffleId, final TaskContext task) {
    return Reader.NONE;
  }

  /** The executor ends. Idempotent. */
  @Override
  default void close() {}

  /**
   * Receives what one reader does. Thread safe, since a step of the reader may outlast its task.
   */
  interface Reader extends Fetches.Listener {
    /** Does nothing. */
    Reader NONE = new Reader() {};

    /** The reader has ended, or its task has. Idempotent. */
    default void end() {}
  }
}
