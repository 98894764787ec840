package io.zerohop.spark.keeper;

import com.google.errorprone.annotations.concurrent.GuardedBy;
import io.zerohop.device.posix.Clock;
import io.zerohop.device.posix.Housekeeping;
import io.zerohop.shuffle.block.Location;
import io.zerohop.shuffle.keeper.Keeper;
import io.zerohop.spark.compat.RpcMessages;
import io.zerohop.spark.conf.KeeperReach;
import io.zerohop.spark.log.SparkCode;
import java.time.Duration;
import java.util.Arrays;
import java.util.HashMap;
import java.util.HashSet;
import java.util.Map;
import java.util.Set;
import java.util.stream.Collectors;
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
import scala.runtime.BoxedUnit;

/**
 * The map outputs of executors that have ended, in the driver. Spark leaves them registered, see
 * {@code ReliableShuffleIo}; so those that no keeper has are removed here, and a stage that runs
 * submits its missing partitions at its end. The keeper says what it has: the ids of outputs by
 * shuffle once, and that it still is there every two seconds. The answer is the shuffles of which
 * the driver counts on any of them.
 *
 * <p>Once executors are on several nodes, an output counts as kept only if its keeper answers other
 * nodes, as its location says. Where a keeper that still reports did not answer a reader of another
 * node, as that says ({@link #tellNotReached}), keepers are out of reach, and nothing outlives its
 * executor from then on. A keeper that answers, but lacks an output or has it damaged, is in reach.
 * Thread safe.
 */
public final class KeptOutputs extends SparkListener {
  private static final Logger LOG = LoggerFactory.getLogger(KeptOutputs.class);
  private static final String NAME = "zerohop-kept-outputs";
  private static final Duration ROUND = Duration.ofSeconds(2);

  /** A keeper that says nothing for so many rounds is gone. A pause of the driver is one round. */
  private static final int MAX_SILENT_ROUNDS = (int) Keeper.Driver.PATIENCE.dividedBy(ROUND);

  private final MapOutputTrackerMaster tracker;

  /** Hosts of executors, present and former ones, as long as keepers may have their outputs. */
  @GuardedBy("this")
  private final Map<String, String> hosts = new HashMap<>();

  /** Whether executors are, or were, on several nodes. */
  @GuardedBy("this")
  private boolean areSeveral;

  /** Whether keepers were found to be out of the reach of other nodes. */
  @GuardedBy("this")
  private boolean areOutOfReach;

  /** Rounds since the keeper of kept outputs did not answer another node, by their executor. */
  @GuardedBy("this")
  private final Map<String, Integer> notReached = new HashMap<>();

  /** Rounds without a word from the keeper, by the id of an executor that has ended. */
  @GuardedBy("this")
  private final Map<String, Integer> silent = new HashMap<>();

  /**
   * Executors whose kept outputs could not be read since their keeper has reported, by host, and
   * the rounds since. A keeper that was gone for longer has lost all by its silence, and another
   * one of its host says nothing before an executor has ended.
   */
  @GuardedBy("this")
  private final Map<String, Map<String, Integer>> unread = new HashMap<>();

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
    return Arrays.stream(needed).boxed().collect(Collectors.toSet());
  }

  /**
   * Tells the driver that the keeper of an executor that ended did not answer this executor, which
   * is on another node. Waits a limited time if the driver does not answer either, and then leaves
   * it to the next reader.
   */
  public static void tellNotReached(
      final RpcEnv env, final SparkConf conf, final String executorId) {
    try {
      RpcUtils.makeDriverRef(NAME, conf, env).send(new Object[] {name(conf), executorId});
    } catch (final Exception e) {
      // Scala throws what it does not declare.
      LOG.debug("the driver was not told of the keeper of executor {}", executorId, e);
    }
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
    if (executor.isDriver()) {
      return;
    }
    hosts.put(executor.executorId(), executor.host());
    if (!areSeveral && Set.copyOf(hosts.values()).size() > 1) {
      areSeveral = true;
      LOG.info(
          "Zerohop: executors are on several nodes, so map outputs outlive them only where their"
              + " keeper answers other nodes");
      for (final String ended : silent.keySet()) {
        removeNear(ended);
      }
    }
  }

  /**
   * Removes all that a keeper that is gone has of executors that have ended. A report of one of
   * them comes of the next keeper of the host, so they are remembered for a while.
   */
  @GuardedBy("this")
  private void removeAll(final String host) {
    for (final String ended : silent.keySet()) {
      if (host.equals(hosts.get(ended))) {
        tracker.removeOutputsOnExecutor(KeptId.of(ended));
      }
    }
  }

  @GuardedBy("this")
  private void remove(final String ended) {
    tracker.removeOutputsOnExecutor(KeptId.of(ended));
    silent.remove(ended);
    hosts.remove(ended);
  }

  /** Whether the driver still counts on kept outputs of an executor. */
  private boolean hasOutputs(final String ended) {
    final Iterator<ShuffleStatus> shuffles = tracker.shuffleStatuses().valuesIterator();
    while (shuffles.hasNext()) {
      if (!registered(shuffles.next(), KeptId.of(ended)).isEmpty()) {
        return true;
      }
    }
    return false;
  }

  /** Removes what the keeper of an executor that has ended does not send to other nodes. */
  @GuardedBy("this")
  private void removeNear(final String ended) {
    final Iterator<Tuple2<Object, ShuffleStatus>> shuffles = tracker.shuffleStatuses().iterator();
    while (shuffles.hasNext()) {
      final Tuple2<Object, ShuffleStatus> shuffle = shuffles.next();
      registered(shuffle._2(), KeptId.of(ended))
          .forEach(
              (index, status) -> {
                if (!isFar(status.location())) {
                  tracker.unregisterMapOutput((Integer) shuffle._1(), index, status.location());
                }
              });
    }
  }

  /** Whether executors of other nodes reach an output once its executor has ended. */
  private static boolean isFar(final BlockManagerId kept) {
    final Location location =
        kept.topologyInfo().isDefined() ? Location.parse(kept.topologyInfo().get()) : null;
    return location != null && location.keeperPort() > 0;
  }

  /**
   * Spark removes what could not be read of one executor, and gives a stage up after a few such
   * attempts. So where a second executor's of a host cannot be read, and its keeper has said
   * nothing meanwhile, it is taken for gone with all that it had.
   */
  @Override
  public void onTaskEnd(final SparkListenerTaskEnd event) {
    if (event.reason() instanceof FetchFailed failure && failure.bmAddress() != null) {
      final String owner = failure.bmAddress().executorId();
      if (KeptId.isOne(owner)) {
        unread(KeptId.executorOf(owner), failure.bmAddress().host());
      }
    }
  }

  private synchronized void unread(final String ended, final String host) {
    final Integer before = unread.computeIfAbsent(host, any -> new HashMap<>()).put(ended, 0);
    final boolean isFirstOfRound = before == null || before > 0; // Many tasks may fail at once.
    if (isFirstOfRound && isGone(host)) {
      removeAll(host);
    }
  }

  @GuardedBy("this")
  private boolean isGone(final @Nullable String host) {
    return host != null && unread.getOrDefault(host, Map.of()).size() > 1;
  }

  /**
   * The keeper of an executor's outputs did not answer another node. It may be gone, which the next
   * report denies: see {@link #heard}.
   */
  synchronized void notReached(final String ended) {
    notReached.put(ended, 0);
  }

  /** A keeper reports that did not answer an executor of another node. */
  @GuardedBy("this")
  private void withdraw(final String ended) {
    areOutOfReach = true;
    KeeperReach.reached(false);
    SparkCode.KEEPER_OUT_OF_REACH
        .says(
            "the keeper of a node did not answer an executor of another node, so map outputs end"
                + " with their executors from now on")
        .at("outputs of executor " + ended + ", host " + hosts.get(ended))
        .remedy(
            "let executors reach each other's hosts at spark.zerohop.keeper.port, or unset"
                + " spark.zerohop.keeper")
        .warn(LOG);
    Set.copyOf(silent.keySet()).forEach(this::remove);
  }

  @Override
  public void onExecutorRemoved(final SparkListenerExecutorRemoved event) {
    final String ended = event.executorId();
    tracker.removeOutputsOnExecutor(ended);
    synchronized (this) {
      if (areOutOfReach) {
        remove(ended);
        return;
      }
      silent.put(ended, 0);
      if (isGone(hosts.get(ended))) {
        tracker.removeOutputsOnExecutor(KeptId.of(ended));
      } else if (areSeveral) {
        removeNear(ended);
      }
    }
  }

  /** Removes the outputs of executors that have ended and whose keeper is gone. */
  synchronized void round() {
    silent.replaceAll((executor, rounds) -> rounds + 1);
    age(notReached);
    unread.values().forEach(KeptOutputs::age);
    unread.values().removeIf(Map::isEmpty);
    for (final Map.Entry<String, Integer> executor : Map.copyOf(silent).entrySet()) {
      if (executor.getValue() > MAX_SILENT_ROUNDS) {
        if (hasOutputs(executor.getKey())) {
          LOG.info(
              "Zerohop: executor {} has ended, and no keeper reports its map outputs: they are"
                  + " computed again where they are needed",
              executor.getKey());
        }
        remove(executor.getKey());
      }
    }
  }

  /** Counts a round, and forgets what is longer ago than a keeper may be silent. */
  private static void age(final Map<String, Integer> rounds) {
    rounds.replaceAll((executor, past) -> past + 1);
    rounds.values().removeIf(past -> past > MAX_SILENT_ROUNDS);
  }

  /**
   * Hears of a keeper, and removes the outputs that it does not have.
   *
   * @param outputs ids of map outputs by shuffle; absent if they were said before
   * @return shuffles of which there are others
   */
  synchronized int[] heard(final String executorId, final @Nullable Map<Integer, long[]> outputs) {
    silent.computeIfPresent(executorId, (id, rounds) -> 0);
    if (notReached.remove(executorId) != null) {
      withdraw(executorId);
    }
    final String host = hosts.get(executorId);
    if (host != null) {
      unread.remove(host);
    }
    // A status of an executor that has ended may come after its near outputs were removed.
    final boolean isOnlyFar = areSeveral && silent.containsKey(executorId);
    final Set<Integer> needed = new HashSet<>();
    final Iterator<Tuple2<Object, ShuffleStatus>> shuffles = tracker.shuffleStatuses().iterator();
    while (shuffles.hasNext()) {
      final Tuple2<Object, ShuffleStatus> shuffle = shuffles.next();
      final int shuffleId = (Integer) shuffle._1();
      final Map<Integer, MapStatus> registered = registered(shuffle._2(), KeptId.of(executorId));
      final Set<Long> held = new HashSet<>();
      if (outputs != null) {
        for (final long mapId : outputs.getOrDefault(shuffleId, new long[0])) {
          held.add(mapId);
        }
      }
      final Map<Integer, MapStatus> lost = new HashMap<>(registered);
      lost.values()
          .removeIf(
              status ->
                  (outputs == null || held.contains(status.mapId()))
                      && (!isOnlyFar || isFar(status.location())));
      lost.forEach(
          (index, status) -> tracker.unregisterMapOutput(shuffleId, index, status.location()));
      if (!lost.isEmpty()) {
        LOG.info(
            "Zerohop: executor {} has ended, and its keeper does not have {} of its {} map outputs of"
                + " shuffle {}: they are computed again",
            executorId,
            lost.size(),
            registered.size(),
            shuffleId);
      }
      registered.keySet().removeAll(lost.keySet());
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
    public PartialFunction<Object, BoxedUnit> receive() {
      return new RpcMessages<>(
          Object[].class,
          words -> words.length == 2,
          words -> {
            if (name.equals(words[0])) {
              outputs.notReached((String) words[1]);
            }
          });
    }

    @Override
    @SuppressWarnings("unchecked")
    public PartialFunction<Object, BoxedUnit> receiveAndReply(final RpcCallContext context) {
      return new RpcMessages<>(
          Object[].class,
          words -> words.length == 3,
          words -> {
            if (name.equals(words[0])) {
              context.reply(outputs.heard((String) words[1], (Map<Integer, long[]>) words[2]));
            } else {
              // The keeper of an application that ended, whose driver had this port.
              context.sendFailure(new IllegalArgumentException("this is " + name));
            }
          });
    }
  }
}
