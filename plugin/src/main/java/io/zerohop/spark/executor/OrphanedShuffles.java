package io.zerohop.spark.executor;

import io.zerohop.device.ZerohopException;
import io.zerohop.device.posix.Deadline;
import io.zerohop.device.posix.Threads;
import io.zerohop.spark.log.SparkCode;
import java.time.Duration;
import java.util.HashSet;
import java.util.Set;
import java.util.concurrent.Executors;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.TimeUnit;
import java.util.function.IntConsumer;
import java.util.function.Supplier;
import java.util.function.UnaryOperator;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Drops the shuffles that the driver has dropped without this executor's knowledge. Spark tells
 * only registered block managers, once, and an executor that somebody took for dead has none until
 * its next heartbeat. So the driver is asked now and then.
 *
 * <p>A shuffle goes when two answers in a row, a period apart, do not have it. One is not enough:
 * Spark may compute a shuffle again that it cleaned up, and between the question and the drop its
 * new outputs might come in. Without an answer nothing goes. Should a live shuffle go nevertheless,
 * its map tasks run again.
 */
final class OrphanedShuffles implements AutoCloseable {
  private static final Logger LOG = LoggerFactory.getLogger(OrphanedShuffles.class);
  private static final Duration STOP_LIMIT = Duration.ofSeconds(5);

  private final Supplier<Set<Integer>> held;
  private final UnaryOperator<Set<Integer>> live;
  private final IntConsumer drop;
  private final ScheduledExecutorService asking =
      Executors.newSingleThreadScheduledExecutor(OrphanedShuffles::thread);

  /** Those that the last answer did not have. Used by one thread. */
  private Set<Integer> unknown = Set.of();

  /**
   * Begins to ask.
   *
   * @param held the shuffles of which this executor holds map outputs
   * @param live those of some shuffles that the driver knows; may fail, and waits a limited time
   * @param drop forgets one
   */
  OrphanedShuffles(
      final Supplier<Set<Integer>> held,
      final UnaryOperator<Set<Integer>> live,
      final IntConsumer drop,
      final Duration period) {
    this.held = held;
    this.live = live;
    this.drop = drop;
    final long millis = period.toMillis();
    try {
      asking.scheduleWithFixedDelay(this::round, millis, millis, TimeUnit.MILLISECONDS);
    } catch (final ZerohopException e) {
      SparkCode.ORPHANS_NOT_ASKED
          .says(
              "cannot ask the driver which shuffles exist; a shuffle whose removal is lost"
                  + " keeps its memory")
          .because(e)
          .warn(LOG, e);
    }
  }

  private static Thread thread(final Runnable work) {
    final Thread thread = Threads.daemon(work, "zerohop-orphans");
    // It is made in some task's thread, whose class loader must not live as long.
    thread.setContextClassLoader(OrphanedShuffles.class.getClassLoader());
    return thread;
  }

  private void round() {
    try {
      final Set<Integer> asked = held.get();
      final Set<Integer> missing = new HashSet<>(asked);
      if (!asked.isEmpty()) {
        missing.removeAll(live.apply(asked));
      }
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
      LOG.debug("the driver was not asked which shuffles exist; the next round asks again", e);
    }
  }

  /** Asks no more, and waits a limited time for the question under way. Idempotent. */
  @Override
  public void close() {
    asking.shutdownNow();
    Deadline.in(STOP_LIMIT)
        .await(
            asking::isTerminated, millis -> asking.awaitTermination(millis, TimeUnit.MILLISECONDS));
  }
}
