package io.zerohop.spark.keeper;

import static org.assertj.core.api.Assertions.assertThat;

import io.zerohop.shuffle.block.Location;
import io.zerohop.spark.compat.SparkLinks;
import io.zerohop.spark.conf.KeeperReach;
import io.zerohop.spark.conf.ReliableShuffleIo;
import java.util.Map;
import java.util.Set;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import org.apache.spark.FetchFailed;
import org.apache.spark.MapOutputTrackerMaster;
import org.apache.spark.SparkConf;
import org.apache.spark.scheduler.SparkListenerBlockManagerAdded;
import org.apache.spark.scheduler.SparkListenerExecutorRemoved;
import org.apache.spark.scheduler.SparkListenerTaskEnd;
import org.apache.spark.scheduler.TaskInfo;
import org.apache.spark.scheduler.TaskLocality;
import org.apache.spark.storage.BlockManagerId;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import scala.Function1;
import scala.Option;

/** The driver's part, on Spark's own tracker: shuffle 1 has six map outputs. */
class KeptOutputsTest {
  private static final int SHUFFLE = 1;
  private static final int MAPS = 6;
  private static final String HOST = "host-1";

  private final MapOutputTrackerMaster tracker =
      new MapOutputTrackerMaster(new SparkConf(false), null, true);
  private final KeptOutputs outputs = new KeptOutputs(tracker);

  @BeforeEach
  void start() {
    KeeperReach.reached(true);
    tracker.registerShuffle(SHUFFLE, MAPS, 0);
  }

  @AfterEach
  void nothingIsLeftForOthers() {
    KeeperReach.reached(false);
  }

  private static BlockManagerId executor(final String id, final String host) {
    return BlockManagerId.apply(id, host, 7077, Option.empty());
  }

  private void added(final String id, final String host) {
    outputs.onBlockManagerAdded(
        new SparkListenerBlockManagerAdded(
            0, executor(id, host), 1, Option.empty(), Option.empty()));
  }

  private void removed(final String id) {
    outputs.onExecutorRemoved(new SparkListenerExecutorRemoved(0, id, "killed"));
  }

  /** A map output, whose id is a hundred more than its index. */
  private void register(final int index, final BlockManagerId at) {
    tracker.registerMapOutput(
        SHUFFLE, index, SparkLinks.newMapStatus(at, new long[] {1}, 100 + index, 0));
  }

  private void keptOf(final String id, final int... indices) {
    for (final int index : indices) {
      register(index, KeptId.of(executor(id, HOST)));
    }
  }

  private Set<Integer> registered() {
    final Function1<org.apache.spark.scheduler.MapStatus[], Set<Integer>> there =
        statuses ->
            IntStream.range(0, MAPS)
                .filter(index -> statuses[index] != null)
                .boxed()
                .collect(Collectors.toSet());
    return tracker.shuffleStatuses().apply(SHUFFLE).withMapStatuses(there);
  }

  private void notRead(final String id) {
    outputs.onTaskEnd(
        new SparkListenerTaskEnd(
            0,
            0,
            "ResultTask",
            new FetchFailed(KeptId.of(executor(id, HOST)), SHUFFLE, 100, 0, 0, "nobody is there"),
            new TaskInfo(1, 1, 0, 0, 0, "9", "host-2", TaskLocality.ANY(), false),
            null,
            null));
  }

  private static boolean isReliable() {
    return new ReliableShuffleIo(new SparkConf(false)).driver().supportsReliableStorage();
  }

  @Test
  void whatNoKeeperHasGoesWithTheExecutor() {
    added("1", HOST);
    register(0, executor("1", HOST));
    keptOf("1", 1, 2);
    removed("1");
    assertThat(registered()).containsExactlyInAnyOrder(1, 2);
    assertThat(isReliable()).isTrue();
  }

  @Test
  void whatTheKeeperDoesNotHaveGoesOnceItIsHeard() {
    added("1", HOST);
    keptOf("1", 0, 1);
    keptOf("2", 2);
    removed("1");
    assertThat(outputs.heard("1", Map.of(SHUFFLE, new long[] {101, 177}, 9, new long[] {1})))
        .containsExactly(SHUFFLE);
    assertThat(registered()).containsExactlyInAnyOrder(1, 2);
    assertThat(outputs.heard("1", null)).containsExactly(SHUFFLE);
    assertThat(outputs.heard("1", Map.of())).isEmpty();
    assertThat(registered()).containsExactly(2);
  }

  @Test
  void whatWasReplacedOrDroppedIsNotNeeded() {
    added("1", HOST);
    keptOf("1", 0);
    removed("1");
    assertThat(outputs.heard("1", Map.of(SHUFFLE, new long[] {100}))).containsExactly(SHUFFLE);
    register(0, KeptId.of(executor("2", HOST)));
    assertThat(outputs.heard("1", null)).isEmpty();
    assertThat(outputs.heard("2", null)).containsExactly(SHUFFLE);
    tracker.unregisterShuffle(SHUFFLE);
    assertThat(outputs.heard("2", null)).isEmpty();
  }

  @Test
  void whatASilentKeeperHadGoes() {
    added("1", HOST);
    keptOf("1", 0);
    keptOf("2", 1);
    keptOf("3", 2);
    removed("1");
    removed("2");
    for (int round = 0; round < 20; round++) {
      outputs.round();
      outputs.heard("2", null);
    }
    assertThat(registered()).containsExactlyInAnyOrder(1, 2); // The third lives.
  }

  @Test
  void twoExecutorsThatCannotBeReadAreAllOfAKeeper() {
    for (int executor = 1; executor <= 5; executor++) {
      added(Integer.toString(executor), HOST);
      keptOf(Integer.toString(executor), executor);
    }
    removed("1");
    removed("2");
    removed("3");
    notRead("1");
    assertThat(registered()).contains(2, 3);
    outputs.heard("3", null);
    notRead("2"); // The first one since the keeper was heard.
    assertThat(registered()).contains(2, 3);
    notRead("1");
    assertThat(registered()).containsExactlyInAnyOrder(4, 5); // They live.
    removed("4");
    assertThat(registered()).containsExactly(5);
  }

  /** Executors 1 to 5 have an output each, and the keeper of the first two is lost with them. */
  private void loseAKeeper() {
    for (int executor = 1; executor <= 5; executor++) {
      added(Integer.toString(executor), HOST);
      keptOf(Integer.toString(executor), executor);
    }
    removed("1");
    removed("2");
    notRead("1");
    notRead("2");
    assertThat(registered()).containsExactlyInAnyOrder(3, 4, 5);
  }

  /** It says nothing before an executor has ended, and the driver may see that end first. */
  @Test
  void theNextKeeperOfAHostIsHeardAlsoOfWhatWasRemoved() {
    loseAKeeper();
    removed("3");
    assertThat(registered()).as("the keeper counts as gone").containsExactlyInAnyOrder(4, 5);
    assertThat(outputs.heard("3", Map.of(SHUFFLE, new long[] {103}))).isEmpty();
    removed("4");
    assertThat(outputs.heard("4", Map.of(SHUFFLE, new long[] {104}))).containsExactly(SHUFFLE);
    assertThat(registered()).containsExactlyInAnyOrder(4, 5);
  }

  @Test
  void aKeeperThatWasLostLongAgoSaysNothingOfTheNextOne() {
    loseAKeeper();
    for (int round = 0; round < 20; round++) {
      outputs.round();
    }
    removed("3");
    assertThat(outputs.heard("3", Map.of(SHUFFLE, new long[] {103}))).containsExactly(SHUFFLE);
    assertThat(registered()).containsExactlyInAnyOrder(3, 4, 5);
  }

  /** A location whose keeper answers other nodes, or does not. */
  private static BlockManagerId kept(final String id, final String host, final int port) {
    final Location location =
        new Location("01234567", "0123456789abcdef", 7, 0, "1-0000000000000007").withKeeper(port);
    return KeptId.of(BlockManagerId.apply(id, host, 7077, Option.apply(location.encode())));
  }

  @Test
  void onSeveralNodesOnlyThatIsKeptWhichOtherNodesReach() {
    added("1", HOST);
    added("2", HOST);
    register(0, kept("1", HOST, 0));
    register(1, kept("1", HOST, 4711));
    register(2, kept("2", HOST, 0));
    register(3, kept("2", HOST, 4711));
    removed("1");
    assertThat(registered()).containsExactlyInAnyOrder(0, 1, 2, 3);
    added("3", "host-2");
    assertThat(registered()).containsExactlyInAnyOrder(1, 2, 3);
    removed("2");
    assertThat(registered()).containsExactlyInAnyOrder(1, 3);
    assertThat(isReliable()).isTrue();
    assertThat(outputs.heard("1", Map.of(SHUFFLE, new long[] {100, 101}))).containsExactly(SHUFFLE);
    assertThat(registered()).containsExactlyInAnyOrder(1, 3);
    // The status of a task that ended just before its executor.
    register(0, kept("1", HOST, 0));
    outputs.heard("1", null);
    assertThat(registered()).containsExactlyInAnyOrder(1, 3);
  }

  @Test
  void aKeeperIsGoneAloneThatIsNotReadOnItsHost() {
    added("1", HOST);
    added("2", HOST);
    added("3", "host-2");
    for (int executor = 1; executor <= 3; executor++) {
      final String id = Integer.toString(executor);
      register(executor, kept(id, executor == 3 ? "host-2" : HOST, 4711));
      removed(id);
    }
    notRead("1");
    outputs.heard("3", null); // Says nothing of the other host's keeper.
    notRead("2");
    assertThat(registered()).containsExactly(3);
    assertThat(isReliable()).isTrue();
  }

  @Test
  void nothingOutlivesItsExecutorOnceAKeeperThatIsThereIsOutOfReach() {
    added("1", HOST);
    added("2", HOST);
    added("3", "host-2");
    register(0, kept("1", HOST, 4711));
    register(1, kept("2", HOST, 4711));
    removed("1");
    outputs.notReached("1");
    assertThat(isReliable()).isTrue(); // The keeper may be gone.
    outputs.heard("1", null);
    assertThat(isReliable()).isFalse();
    assertThat(registered()).containsExactly(1);
    removed("2");
    assertThat(registered()).isEmpty();
  }

  /** Spark computes what was damaged or missing again; the keeper's other outputs are read. */
  @Test
  void anOutputThatAKeeperDoesNotGiveSaysNothingOfItsReach() {
    added("1", HOST);
    added("3", "host-2");
    register(0, kept("1", HOST, 4711));
    removed("1");
    notRead("1");
    outputs.heard("1", null);
    assertThat(isReliable()).isTrue();
    assertThat(registered()).containsExactly(0);
  }

  /** The executor still lived; its reader could not connect for a moment. */
  @Test
  void aReadThatFailedLongBeforeAReportSaysNothingOfTheKeeper() {
    added("1", HOST);
    added("3", "host-2");
    register(0, kept("1", HOST, 4711));
    outputs.notReached("1");
    for (int round = 0; round < 20; round++) {
      outputs.round();
    }
    removed("1");
    outputs.heard("1", null);
    assertThat(isReliable()).isTrue();
    assertThat(registered()).containsExactly(0);
  }

  @Test
  void aKeeperThatIsGoneLeavesTheOthersInReach() {
    added("1", HOST);
    added("3", "host-2");
    register(0, kept("1", HOST, 4711));
    removed("1");
    outputs.notReached("1");
    for (int round = 0; round < 20; round++) {
      outputs.round();
    }
    assertThat(registered()).isEmpty();
    assertThat(isReliable()).isTrue();
  }
}
