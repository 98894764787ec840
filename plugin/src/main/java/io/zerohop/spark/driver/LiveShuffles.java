package io.zerohop.spark.driver;

import com.google.errorprone.annotations.concurrent.GuardedBy;
import io.zerohop.device.posix.Clock;
import io.zerohop.spark.compat.RpcMessages;
import io.zerohop.spark.compat.SparkFeature;
import io.zerohop.spark.compat.SparkLinks;
import io.zerohop.spark.compat.SparkProbe;
import java.util.Arrays;
import java.util.HashMap;
import java.util.HashSet;
import java.util.Map;
import java.util.Properties;
import java.util.Set;
import java.util.function.IntPredicate;
import java.util.function.IntToLongFunction;
import java.util.stream.LongStream;
import org.apache.spark.MapOutputTrackerMaster;
import org.apache.spark.SparkConf;
import org.apache.spark.SparkContext;
import org.apache.spark.SparkEnv;
import org.apache.spark.rpc.RpcCallContext;
import org.apache.spark.rpc.RpcEndpoint;
import org.apache.spark.rpc.RpcEndpointRef;
import org.apache.spark.rpc.RpcEnv;
import org.apache.spark.scheduler.SparkListener;
import org.apache.spark.scheduler.SparkListenerEvent;
import org.apache.spark.scheduler.SparkListenerJobStart;
import org.apache.spark.scheduler.StageInfo;
import org.apache.spark.sql.execution.ui.SparkListenerSQLExecutionEnd;
import org.apache.spark.util.RpcUtils;
import org.jspecify.annotations.Nullable;
import scala.Option;
import scala.PartialFunction;
import scala.collection.Iterator;
import scala.reflect.ClassTag$;
import scala.runtime.BoxedUnit;

/**
 * The driver's response to executors that ask which shuffles still exist, and which of them are
 * finished, over Spark's own RPC. A question is shuffle ids as {@code int[]}. An answer is a {@code
 * long[]} with the id of each that exists and the time since it was finished: Spark may read them
 * with a class loader that has none of our classes. Thread safe.
 */
public final class LiveShuffles implements RpcEndpoint {
  private static final String NAME = "zerohop-live-shuffles";

  private final RpcEnv rpcEnv;
  private final MapOutputTrackerMaster tracker;

  /** Not by its class, which links what a vendor's Spark may lack. */
  private final IntToLongFunction nanosSinceEnd;

  private LiveShuffles(
      final RpcEnv rpcEnv,
      final MapOutputTrackerMaster tracker,
      final IntToLongFunction nanosSinceEnd) {
    this.rpcEnv = rpcEnv;
    this.tracker = tracker;
    this.nanosSinceEnd = nanosSinceEnd;
  }

  /** Begins to answer, in the driver; until its RPC environment ends. */
  public static void serve(final SparkContext context, final SparkEnv env) {
    final MapOutputTrackerMaster tracker = (MapOutputTrackerMaster) env.mapOutputTracker();
    final IntToLongFunction ends =
        SparkProbe.here().has(SparkFeature.QUERIES)
            ? FinishedShuffles.follow(context, tracker::containsShuffle)
            : id -> -1;
    env.rpcEnv().setupEndpoint(NAME, new LiveShuffles(env.rpcEnv(), tracker, ends));
  }

  /**
   * Asks the driver, in an executor; waits as long as Spark's RPC does ({@code
   * spark.rpc.askTimeout}).
   *
   * @return those of the shuffles that the driver knows, with nanoseconds since the last of their
   *     queries ended, or -1 if they may be in use
   */
  public static Map<Integer, Long> ask(
      final SparkEnv env, final SparkConf conf, final Set<Integer> shuffles) {
    final RpcEndpointRef driver = RpcUtils.makeDriverRef(NAME, conf, env.rpcEnv());
    final int[] question = shuffles.stream().mapToInt(Integer::intValue).toArray();
    final long[] answer =
        driver.askSync(
            question, RpcUtils.askRpcTimeout(conf), ClassTag$.MODULE$.<long[]>apply(long[].class));
    final Map<Integer, Long> known = new HashMap<>();
    for (int i = 0; i < answer.length; i += 2) {
      known.put((int) answer[i], answer[i + 1]);
    }
    return known;
  }

  @Override
  public RpcEnv rpcEnv() {
    return rpcEnv;
  }

  @Override
  public PartialFunction<Object, BoxedUnit> receiveAndReply(final RpcCallContext context) {
    return new RpcMessages<>(
        int[].class,
        any -> true,
        asked ->
            // The tracker, not our own list: Spark may compute a shuffle again that it cleaned up.
            context.reply(
                Arrays.stream(asked)
                    .filter(tracker::containsShuffle)
                    .boxed()
                    .flatMapToLong(id -> LongStream.of(id, nanosSinceEnd.applyAsLong(id)))
                    .toArray()));
  }

  /**
   * The shuffles whose queries have all ended, in the driver, by Spark's events. Spark drops a
   * shuffle when the driver's garbage collector finds that nobody refers to it, which may be long
   * after; until then it may be read again, and is the first to leave executors' memory.
   *
   * <p>A query is an execution of Spark SQL, with those inside it. It uses the shuffles of its
   * jobs' stages, also of those that Spark skips since their map outputs are there. A later job
   * that has one of them puts it in use again, in a query or not; where it is in none, its end is
   * not known. Events may be late or lost: what executors use is in use for them, whatever is known
   * here.
   *
   * <p>It has at most the shuffles that Spark keeps. Thread safe.
   */
  static final class FinishedShuffles extends SparkListener {
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
     * @return nanoseconds since the last query of a shuffle ended; -1 if a query may use it, or
     *     none did; for any thread
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
}
