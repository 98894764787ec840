package io.zerohop.spark.driver;

import java.util.Arrays;
import java.util.Set;
import java.util.stream.Collectors;
import org.apache.spark.MapOutputTrackerMaster;
import org.apache.spark.SparkConf;
import org.apache.spark.SparkEnv;
import org.apache.spark.rpc.RpcCallContext;
import org.apache.spark.rpc.RpcEndpoint;
import org.apache.spark.rpc.RpcEndpointRef;
import org.apache.spark.rpc.RpcEnv;
import org.apache.spark.util.RpcUtils;
import scala.Function1;
import scala.PartialFunction;
import scala.reflect.ClassTag$;
import scala.runtime.AbstractPartialFunction;
import scala.runtime.BoxedUnit;

/**
 * The driver's response to executors that ask which shuffles still exist, over Spark's own RPC. A
 * question and an answer are shuffle ids as {@code int[]}: Spark may read them with a class loader
 * that has none of our classes. Thread safe.
 */
public final class LiveShuffles implements RpcEndpoint {
  private static final String NAME = "zerohop-live-shuffles";

  private final RpcEnv rpcEnv;
  private final MapOutputTrackerMaster tracker;

  private LiveShuffles(final RpcEnv rpcEnv, final MapOutputTrackerMaster tracker) {
    this.rpcEnv = rpcEnv;
    this.tracker = tracker;
  }

  /** Begins to answer, in the driver; until its RPC environment ends. */
  public static void serve(final SparkEnv env) {
    final MapOutputTrackerMaster tracker = (MapOutputTrackerMaster) env.mapOutputTracker();
    env.rpcEnv().setupEndpoint(NAME, new LiveShuffles(env.rpcEnv(), tracker));
  }

  /**
   * Asks the driver, in an executor; waits as long as Spark's RPC does ({@code
   * spark.rpc.askTimeout}).
   *
   * @return those of the shuffles that the driver knows
   */
  public static Set<Integer> ask(
      final SparkEnv env, final SparkConf conf, final Set<Integer> shuffles) {
    final RpcEndpointRef driver = RpcUtils.makeDriverRef(NAME, conf, env.rpcEnv());
    final int[] question = shuffles.stream().mapToInt(Integer::intValue).toArray();
    final int[] answer =
        driver.askSync(
            question, RpcUtils.askRpcTimeout(conf), ClassTag$.MODULE$.<int[]>apply(int[].class));
    return Arrays.stream(answer).boxed().collect(Collectors.toSet());
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
      public <A, B> B applyOrElse(final A message, final Function1<A, B> otherwise) {
        if (message instanceof int[] asked) {
          // The tracker, not our own list: Spark may compute a shuffle again that it cleaned up.
          context.reply(Arrays.stream(asked).filter(tracker::containsShuffle).toArray());
          return null;
        }
        return otherwise.apply(message);
      }
    };
  }
}
