package io.zerohop.spark.driver;

import io.zerohop.spark.compat.SparkFeature;
import io.zerohop.spark.compat.SparkProbe;
import java.util.Arrays;
import java.util.HashMap;
import java.util.Map;
import java.util.Set;
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
import org.apache.spark.util.RpcUtils;
import org.jspecify.annotations.Nullable;
import scala.Function1;
import scala.PartialFunction;
import scala.reflect.ClassTag$;
import scala.runtime.AbstractPartialFunction;
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
    return new AbstractPartialFunction<>() {
      @Override
      public boolean isDefinedAt(final Object message) {
        return message instanceof int[];
      }

      @Override
      public <A, B> @Nullable B applyOrElse(final A message, final Function1<A, B> otherwise) {
        if (message instanceof int[] asked) {
          // The tracker, not our own list: Spark may compute a shuffle again that it cleaned up.
          context.reply(
              Arrays.stream(asked)
                  .filter(tracker::containsShuffle)
                  .boxed()
                  .flatMapToLong(id -> LongStream.of(id, nanosSinceEnd.applyAsLong(id)))
                  .toArray());
          return null;
        }
        return otherwise.apply(message);
      }
    };
  }
}
