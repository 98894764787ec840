package io.zerohop.spark.keeper;

import static org.assertj.core.api.Assertions.assertThat;

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
            null,
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
    added("1", HOST);
    for (int executor = 1; executor <= 5; executor++) {
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

  @Test
  void nothingOutlivesItsExecutorOnSeveralNodes() {
    added("1", HOST);
    added("2", HOST);
    keptOf("1", 0);
    keptOf("2", 1);
    removed("1");
    assertThat(registered()).containsExactlyInAnyOrder(0, 1);
    added("3", "host-2");
    assertThat(isReliable()).isFalse();
    assertThat(registered()).containsExactly(1);
    removed("2");
    assertThat(registered()).isEmpty();
  }
}
