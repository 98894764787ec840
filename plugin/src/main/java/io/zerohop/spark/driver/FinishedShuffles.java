package io.zerohop.spark.driver;

import com.google.errorprone.annotations.concurrent.GuardedBy;
import io.zerohop.device.posix.Clock;
import io.zerohop.spark.compat.SparkLinks;
import java.util.HashMap;
import java.util.HashSet;
import java.util.Map;
import java.util.Properties;
import java.util.Set;
import java.util.function.IntPredicate;
import java.util.function.IntToLongFunction;
import org.apache.spark.SparkContext;
import org.apache.spark.scheduler.SparkListener;
import org.apache.spark.scheduler.SparkListenerEvent;
import org.apache.spark.scheduler.SparkListenerJobStart;
import org.apache.spark.scheduler.StageInfo;
import org.apache.spark.sql.execution.ui.SparkListenerSQLExecutionEnd;
import org.jspecify.annotations.Nullable;
import scala.Option;
import scala.collection.Iterator;

/**
 * The shuffles whose queries have all ended, in the driver, by Spark's events. Spark drops a
 * shuffle when the driver's garbage collector finds that nobody refers to it, which may be long
 * after; until then it may be read again, and is the first to leave executors' memory.
 *
 * <p>A query is an execution of Spark SQL, with those inside it. It uses the shuffles of its jobs'
 * stages, also of those that Spark skips since their map outputs are there. A later job that has
 * one of them puts it in use again, in a query or not; where it is in none, its end is not known.
 * Events may be late or lost: what executors use is in use for them, whatever is known here.
 *
 * <p>It has at most the shuffles that Spark keeps. Thread safe.
 */
final class FinishedShuffles extends SparkListener {
  private static final String EXECUTION = "spark.sql.execution.id";

  /** The execution that the one above is part of, which may be itself. */
  private static final String ROOT = "spark.sql.execution.root.id";

  private final IntPredicate exists;
  private final Clock clock;

  /** Shuffles of running queries that have any, by the query's execution. */
  @GuardedBy("this")
  private final Map<Long, Set<Integer>> running = new HashMap<>();

  /** When the last query of a shuffle ended, by the clock. */
  @GuardedBy("this")
  private final Map<Integer, Long> ends = new HashMap<>();

  /**
   * @param exists whether Spark keeps a shuffle
   * @param clock by which queries have ended
   */
  FinishedShuffles(final IntPredicate exists, final Clock clock) {
    this.exists = exists;
    this.clock = clock;
  }

  /**
   * Follows an application's queries from now on.
   *
   * @param exists whether Spark keeps a shuffle
   * @return nanoseconds since the last query of a shuffle ended; -1 if a query may use it, or none
   *     did; for any thread
   */
  static IntToLongFunction follow(final SparkContext context, final IntPredicate exists) {
    final FinishedShuffles finished = new FinishedShuffles(exists, Clock.system());
    context.addSparkListener(finished);
    return finished::nanosSinceEnd;
  }

  /** As {@link #follow} says. */
  synchronized long nanosSinceEnd(final int shuffleId) {
    final Long end = ends.get(shuffleId);
    return end == null ? -1 : clock.since(end);
  }

  @Override
  public void onJobStart(final SparkListenerJobStart event) {
    final Set<Integer> shuffles = new HashSet<>();
    final Iterator<StageInfo> stages = SparkLinks.stages(event).iterator();
    while (stages.hasNext()) {
      final Option<Object> shuffle = stages.next().shuffleDepId();
      if (shuffle.isDefined()) {
        shuffles.add((Integer) shuffle.get());
      }
    }
    use(queryOf(event.properties()), shuffles);
  }

  /** The execution at the root; null if the job is in none. */
  private static @Nullable Long queryOf(final @Nullable Properties job) {
    final String query = job == null ? null : job.getProperty(ROOT, job.getProperty(EXECUTION));
    return query == null ? null : Long.valueOf(query);
  }

  /**
   * A job begins.
   *
   * @param query its query, if it is in one
   */
  synchronized void use(final @Nullable Long query, final Set<Integer> shuffles) {
    ends.keySet().removeAll(shuffles);
    if (query != null && !shuffles.isEmpty()) {
      running.computeIfAbsent(query, id -> new HashSet<>()).addAll(shuffles);
    }
  }

  @Override
  public void onOtherEvent(final SparkListenerEvent event) {
    if (event instanceof SparkListenerSQLExecutionEnd end) {
      end(end.executionId());
    }
  }

  /** An execution ends; if it is inside another one, that is still to end. */
  synchronized void end(final long execution) {
    final Set<Integer> used = running.remove(execution);
    if (used == null) {
      return;
    }
    running.values().forEach(used::removeAll);
    final long now = clock.nanos();
    used.forEach(shuffle -> ends.put(shuffle, now));
    // Spark has no event for those that it drops, and may have lost another query's end.
    ends.keySet().removeIf(shuffle -> !exists.test(shuffle));
    running.values().forEach(shuffles -> shuffles.removeIf(shuffle -> !exists.test(shuffle)));
    running.values().removeIf(Set::isEmpty);
  }
}
