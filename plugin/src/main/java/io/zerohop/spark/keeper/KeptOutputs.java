package io.zerohop.spark.keeper;

import com.google.errorprone.annotations.concurrent.GuardedBy;
import io.zerohop.device.posix.Clock;
import io.zerohop.device.posix.Housekeeping;
import io.zerohop.spark.conf.KeeperReach;
import java.time.Duration;
import java.util.HashMap;
import java.util.HashSet;
import java.util.Map;
import java.util.Set;
import org.apache.spark.FetchFailed;
import org.apache.spark.MapOutputTrackerMaster;
import org.apache.spark.ShuffleStatus;
import org.apache.spark.SparkConf;
import org.apache.spark.SparkContext;
import org.apache.spark.SparkEnv;
import org.apache.spark.rpc.RpcCallContext;
import org.apache.spark.rpc.RpcEndpoint;
import org.apache.spark.rpc.RpcEndpointRef;
import org.apache.spark.rpc.RpcEnv;
import org.apache.spark.scheduler.MapStatus;
import org.apache.spark.scheduler.SparkListener;
import org.apache.spark.scheduler.SparkListenerBlockManagerAdded;
import org.apache.spark.scheduler.SparkListenerExecutorRemoved;
import org.apache.spark.scheduler.SparkListenerTaskEnd;
import org.apache.spark.storage.BlockManagerId;
import org.apache.spark.util.RpcUtils;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import scala.Function1;
import scala.PartialFunction;
import scala.Tuple2;
import scala.collection.Iterator;
import scala.reflect.ClassTag$;
import scala.runtime.AbstractPartialFunction;
import scala.runtime.BoxedUnit;

/**
 * The map outputs of executors that have ended, in the driver. Spark leaves them registered, see
 * {@code ReliableShuffleIo}; so those that no keeper has are removed here, and a stage that runs
 * submits its missing partitions at its end. The keeper says what it has: the ids of outputs by
 * shuffle once, and that it still is there every two seconds. The answer is the shuffles of which
 * the driver counts on any of them.
 *
 * <p>Readers reach the keeper of their own node alone. So once executors are on a second node,
 * nothing outlives its executor any more. Thread safe.
 */
public final class KeptOutputs extends SparkListener {
  private static final Logger LOG = LoggerFactory.getLogger(KeptOutputs.class);
  private static final String NAME = "zerohop-kept-outputs";
  private static final Duration ROUND = Duration.ofSeconds(2);

  /** A keeper that says nothing for so many rounds is gone. A pause of the driver is one round. */
  private static final int MAX_SILENT_ROUNDS = 8;

  private final MapOutputTrackerMaster tracker;

  /** Of executors, present and former ones. */
  @GuardedBy("this")
  private final Set<String> hosts = new HashSet<>();

  /** Rounds without a word from the keeper, by the id of an executor that has ended. */
  @GuardedBy("this")
  private final Map<String, Integer> silent = new HashMap<>();

  /** Executors whose kept outputs could not be read since a keeper has reported. */
  @GuardedBy("this")
  private final Set<String> unread = new HashSet<>();

  KeptOutputs(final MapOutputTrackerMaster tracker) {
    this.tracker = tracker;
  }

  /** Follows an application from now on, until its RPC environment ends. */
  public static void follow(final SparkContext context, final SparkEnv env) {
    final KeptOutputs outputs = new KeptOutputs((MapOutputTrackerMaster) env.mapOutputTracker());
    context.addSparkListener(outputs);
    final Iterator<BlockManagerId> known =
        env.blockManager().master().getMemoryStatus().keysIterator();
    while (known.hasNext()) {
      outputs.added(known.next());
    }
    env.rpcEnv().setupEndpoint(NAME, new Reports(env.rpcEnv(), name(context.conf()), outputs));
  }

  /**
   * Tells the driver what an executor has left, in its keeper; waits as long as Spark's RPC does
   * ({@code spark.rpc.askTimeout}).
   *
   * @param outputs ids of map outputs by shuffle; absent if the driver has heard of them
   * @return shuffles of which the driver counts on outputs of this executor
   */
  static Set<Integer> report(
      final RpcEnv env,
      final SparkConf conf,
      final String executorId,
      final @Nullable Map<Integer, Set<Long>> outputs) {
    final RpcEndpointRef driver = RpcUtils.makeDriverRef(NAME, conf, env);
    HashMap<Integer, long[]> ids = null;
    if (outputs != null) {
      ids = new HashMap<>();
      for (final Map.Entry<Integer, Set<Long>> shuffle : outputs.entrySet()) {
        ids.put(shuffle.getKey(), shuffle.getValue().stream().mapToLong(id -> id).toArray());
      }
    }
    final int[] needed =
        driver.askSync(
            new Object[] {name(conf), executorId, ids},
            RpcUtils.askRpcTimeout(conf),
            ClassTag$.MODULE$.<int[]>apply(int[].class));
    final Set<Integer> shuffles = new HashSet<>();
    for (final int shuffleId : needed) {
      shuffles.add(shuffleId);
    }
    return shuffles;
  }

  /** An application and its driver: a second one may have the same id, and the same port. */
  private static String name(final SparkConf conf) {
    return conf.getAppId() + '@' + conf.get("spark.app.startTime", "");
  }

  @Override
  public void onBlockManagerAdded(final SparkListenerBlockManagerAdded event) {
    added(event.blockManagerId());
  }

  private synchronized void added(final BlockManagerId executor) {
    if (executor.isDriver() || !hosts.add(executor.host()) || hosts.size() != 2) {
      return;
    }
    KeeperReach.reached(false);
    LOG.info(
        "Zerohop: executors are on several nodes, so map outputs end with their executors even"
            + " where a keeper runs");
    removeAll();
  }

  @GuardedBy("this")
  private void removeAll() {
    silent.keySet().forEach(ended -> tracker.removeOutputsOnExecutor(KeptId.of(ended)));
    silent.clear();
  }

  /**
   * Spark removes what could not be read of one executor, and gives a stage up after a few such
   * attempts. So where a second executor's cannot be read, and the keeper has said nothing
   * meanwhile, it is taken for gone with all that it had.
   */
  @Override
  public void onTaskEnd(final SparkListenerTaskEnd event) {
    if (event.reason() instanceof FetchFailed failure && failure.bmAddress() != null) {
      final String owner = failure.bmAddress().executorId();
      synchronized (this) {
        if (KeptId.isOne(owner) && unread.add(owner) && isGone()) {
          removeAll();
        }
      }
    }
  }

  @GuardedBy("this")
  private boolean isGone() {
    return unread.size() > 1;
  }

  @Override
  public void onExecutorRemoved(final SparkListenerExecutorRemoved event) {
    tracker.removeOutputsOnExecutor(event.executorId());
    synchronized (this) {
      if (hosts.size() > 1 || isGone()) {
        tracker.removeOutputsOnExecutor(KeptId.of(event.executorId()));
      } else {
        silent.put(event.executorId(), 0);
      }
    }
  }

  /** Removes the outputs of executors that have ended and whose keeper is gone. */
  synchronized void round() {
    silent.replaceAll((executor, rounds) -> rounds + 1);
    silent.forEach(
        (executor, rounds) -> {
          if (rounds > MAX_SILENT_ROUNDS) {
            tracker.removeOutputsOnExecutor(KeptId.of(executor));
          }
        });
    silent.values().removeIf(rounds -> rounds > MAX_SILENT_ROUNDS);
  }

  /**
   * Hears of a keeper, and removes the outputs that it does not have.
   *
   * @param outputs ids of map outputs by shuffle; absent if they were said before
   * @return shuffles of which there are others
   */
  synchronized int[] heard(final String executorId, final @Nullable Map<Integer, long[]> outputs) {
    silent.computeIfPresent(executorId, (id, rounds) -> 0);
    unread.clear();
    final Set<Integer> needed = new HashSet<>();
    final Iterator<Tuple2<Object, ShuffleStatus>> shuffles = tracker.shuffleStatuses().iterator();
    while (shuffles.hasNext()) {
      final Tuple2<Object, ShuffleStatus> shuffle = shuffles.next();
      final int shuffleId = (Integer) shuffle._1();
      final Map<Integer, MapStatus> registered = registered(shuffle._2(), KeptId.of(executorId));
      if (outputs != null) {
        final Set<Long> held = new HashSet<>();
        for (final long mapId : outputs.getOrDefault(shuffleId, new long[0])) {
          held.add(mapId);
        }
        final Map<Integer, MapStatus> lost = new HashMap<>(registered);
        lost.values().removeIf(status -> held.contains(status.mapId()));
        lost.forEach(
            (index, status) -> tracker.unregisterMapOutput(shuffleId, index, status.location()));
        registered.keySet().removeAll(lost.keySet());
      }
      if (!registered.isEmpty()) {
        needed.add(shuffleId);
      }
    }
    return needed.stream().mapToInt(id -> id).toArray();
  }

  /** The map outputs of a shuffle that an executor has, by their indices. */
  private static Map<Integer, MapStatus> registered(
      final ShuffleStatus shuffle, final String executorId) {
    final Function1<MapStatus[], Map<Integer, MapStatus>> look =
        statuses -> {
          final Map<Integer, MapStatus> found = new HashMap<>();
          for (int index = 0; index < statuses.length; index++) {
            final MapStatus status = statuses[index];
            if (status != null && status.location().executorId().equals(executorId)) {
              found.put(index, status);
            }
          }
          return found;
        };
    return shuffle.withMapStatuses(look);
  }

  /** Receives the reports of keepers. */
  private static final class Reports implements RpcEndpoint {
    private final RpcEnv rpcEnv;
    private final String name;
    private final KeptOutputs outputs;
    private final Housekeeping housekeeping = new Housekeeping(Clock.system());

    private Reports(final RpcEnv rpcEnv, final String name, final KeptOutputs outputs) {
      this.rpcEnv = rpcEnv;
      this.name = name;
      this.outputs = outputs;
      housekeeping.every("kept-outputs", ROUND, outputs::round);
    }

    @Override
    public RpcEnv rpcEnv() {
      return rpcEnv;
    }

    @Override
    public void onStop() {
      housekeeping.close();
      KeeperReach.reached(false);
    }

    @Override
    public PartialFunction<Object, BoxedUnit> receiveAndReply(final RpcCallContext context) {
      return new AbstractPartialFunction<>() {
        @Override
        public boolean isDefinedAt(final Object message) {
          return message instanceof Object[] words && words.length == 3;
        }

        @Override
        @SuppressWarnings("unchecked")
        public <A, B> @Nullable B applyOrElse(final A message, final Function1<A, B> otherwise) {
          if (message instanceof Object[] words && words.length == 3) {
            if (name.equals(words[0])) {
              context.reply(outputs.heard((String) words[1], (Map<Integer, long[]>) words[2]));
            } else {
              // The keeper of an application that ended, whose driver had this port.
              context.sendFailure(new IllegalArgumentException("this is " + name));
            }
            return null;
          }
          return otherwise.apply(message);
        }
      };
    }
  }
}
