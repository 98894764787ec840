package io.zerohop.shuffle;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.zerohop.device.Leaks;
import io.zerohop.shuffle.block.Block;
import io.zerohop.shuffle.block.BlockPath;
import io.zerohop.shuffle.fetch.BlockFetchException;
import io.zerohop.shuffle.fetch.Fetch;
import io.zerohop.shuffle.transport.FakeStaging;
import java.io.IOException;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Nodes in processes of their own, some of which are killed. */
class ProcessesTest {
  private static final int BATCHES = NodeProcess.BATCHES;
  private static final int MOST = NodeProcess.MOST;

  @TempDir private java.nio.file.Path temp;
  private java.nio.file.Path base;
  private final Leaks leaks = new Leaks();
  private ShuffleNode node;

  @BeforeEach
  void start() {
    base = temp.resolve("s");
    node = TestNodes.start(base, "self");
  }

  @AfterEach
  void noLeaks() {
    node.unregisterShuffle(1);
    TestNodes.assertNothingHeld(node);
    TestNodes.eventually(
        "all peers' memory is unmapped", () -> Holdings.of(node).mappedSegments() == 0);
    node.close();
    leaks.check();
    assertThat(base).doesNotExist();
  }

  private void write(final int shuffleId, final int maps) {
    for (int map = 0; map < maps; map++) {
      TestBlocks.write(node, shuffleId, map, BATCHES, NodeProcess.PARTITIONS, MOST);
    }
  }

  @Test
  void threeProcessesReadFromOneAnother() throws IOException {
    try (NodeProcess one = new NodeProcess(base, "1");
        NodeProcess two = new NodeProcess(base, "2")) {
      write(1, 10);
      assertThat(one.ask("write", 2, 10)).isEqualTo("ok");
      assertThat(two.ask("write", 3, 10)).isEqualTo("ok");
      final String self = node.location().encode();
      assertThat(one.ask("read", "self", self, 1, 10)).isEqualTo("[PEER]");
      assertThat(one.ask("read", "2", two.location(), 3, 10)).isEqualTo("[PEER]");
      assertThat(two.ask("read", "self", self, 1, 10)).isEqualTo("[PEER]");
      assertThat(two.ask("read", "1", one.location(), 2, 10)).isEqualTo("[PEER]");
      assertThat(two.ask("read", "2", two.location(), 3, 10)).isEqualTo("[LOCAL]");
      final Map<BlockPath, Integer> counts =
          TestNodes.fetchAndCheck(
              node, TestNodes.noStaging(), BATCHES, MOST, one.source(2, 10), two.source(3, 10));
      assertThat(counts).containsOnlyKeys(BlockPath.PEER);
      assertThat(Holdings.of(node).readingPeers()).isEqualTo(2);
    }
  }

  @Test
  void aReaderThatIsKilledHoldsNothingUp() throws Exception {
    write(1, 3);
    try (NodeProcess reader = new NodeProcess(base, "reader")) {
      assertThat(reader.ask("hold", "self", node.location(), 1, 3)).isEqualTo("true");
      node.unregisterShuffle(1);
      assertThat(Holdings.of(node).retiredRegions()).isEqualTo(7);
      reader.kill();
      TestNodes.eventually("its leases are dropped", () -> node.stats().poolUsedBytes() == 0);
    }
  }

  @Test
  void aReaderFinishesWhatItHolds() throws Exception {
    write(1, 3);
    try (NodeProcess reader = new NodeProcess(base, "reader")) {
      assertThat(reader.ask("hold", "self", node.location(), 1, 3)).isEqualTo("true");
      node.unregisterShuffle(1);
      write(4, 30);
      final int blocks =
          TestBlocks.source("self", node.location(), 1, 0, 3, BATCHES, NodeProcess.PARTITIONS, MOST)
              .blocks()
              .size();
      assertThat(reader.ask("finish")).isEqualTo(Integer.toString(blocks));
      TestNodes.eventually("freed", () -> Holdings.of(node).retiredRegions() == 0);
      node.unregisterShuffle(4);
    }
  }

  @Test
  void anOwnerThatIsKilledBeforeContactIsNoticedAtOnce() throws Exception {
    try (NodeProcess owner = new NodeProcess(base, "owner")) {
      owner.ask("write", 1, 3);
      owner.kill();
      assertGone(owner);
    }
  }

  @Test
  void anOwnerThatIsKilledAfterContactIsNoticedAndUnmapped() throws Exception {
    try (NodeProcess owner = new NodeProcess(base, "owner")) {
      owner.ask("write", 1, 3);
      TestNodes.fetchAndCheck(node, TestNodes.noStaging(), BATCHES, MOST, owner.source(1, 3));
      assertThat(Holdings.of(node).mappedSegments()).isPositive();
      owner.kill();
      // Until the death is noticed its memory is still mapped, and right.
      TestNodes.eventually("the death is noticed", () -> node.stats().peers().readable() == 0);
      assertGone(owner);
      TestNodes.eventually("lost", () -> Holdings.of(node).mappedSegments() == 0);
      assertThat(node.stats().peers().readable()).isZero();
    }
  }

  @Test
  void anOpenWindowOfAKilledOwnerIsReadToItsEnd() throws Exception {
    try (NodeProcess owner = new NodeProcess(base, "owner")) {
      owner.ask("write", 1, 3);
      try (Fetch fetcher =
          node.fetch(
              List.of(owner.source(1, 3)), TestNodes.noStaging(), TestNodes.quiet(), () -> false)) {
        assertThat(fetcher.next()).isTrue();
        owner.kill();
        TestNodes.eventually("the death is noticed", () -> node.stats().peers().readable() == 0);
        do {
          final Block block = fetcher.block().block();
          assertThat(TestNodes.read(fetcher.block()))
              .isEqualTo(TestBlocks.block(1, block.mapId(), BATCHES, block.partition(), MOST));
        } while (fetcher.next());
      }
    }
  }

  @Test
  void anOwnerThatPausesLosesNothing() throws Exception {
    final ShuffleNode.Setup impatient =
        TestNodes.config(base, "reader").set("request.timeout", Duration.ofSeconds(3));
    try (NodeProcess owner = new NodeProcess(base, "owner");
        ShuffleNode reader = ShuffleNode.start(impatient)) {
      owner.ask("write", 1, 3);
      try (Fetch open =
          reader.fetch(
              List.of(owner.source(1, 3)), TestNodes.noStaging(), TestNodes.quiet(), () -> false)) {
        assertThat(open.next()).isTrue();
        owner.ask("write", 2, 200); // In segments that are not mapped while a window is open.
        owner.pause();
        final FakeStaging staging = new FakeStaging(BATCHES, MOST);
        assertThat(TestNodes.fetchAndCheck(reader, staging, BATCHES, MOST, owner.source(2, 200)))
            .containsKey(BlockPath.STAGED);
        staging.assertAllReleased();
        owner.resume();
        do {
          final Block block = open.block().block();
          assertThat(TestNodes.read(open.block()))
              .isEqualTo(TestBlocks.block(1, block.mapId(), BATCHES, block.partition(), MOST));
        } while (open.next());
      }
      TestNodes.eventually(
          "its segments can be had again",
          () ->
              TestNodes.fetchAndCheck(
                      reader, new FakeStaging(BATCHES, MOST), BATCHES, MOST, owner.source(2, 200))
                  .keySet()
                  .equals(Set.of(BlockPath.PEER)));
      assertThat(owner.ask("unregister", 1)).isEqualTo("ok");
      assertThat(owner.ask("unregister", 2)).isEqualTo("ok");
    }
  }

  @Test
  void aRestartedOwnerIsNotTakenForItsPredecessor() throws Exception {
    final NodeProcess first = new NodeProcess(base, "owner");
    first.ask("write", 1, 3);
    first.kill();
    try (NodeProcess second = new NodeProcess(base, "owner")) {
      second.ask("write", 1, 3);
      assertThat(second.location()).isNotEqualTo(first.location());
      // The second one swept the first one's socket away, so only the staged transport can tell.
      final FakeStaging staging = new FakeStaging(BATCHES, MOST);
      assertThat(TestNodes.fetchAndCheck(node, staging, BATCHES, MOST, first.source(1, 3)))
          .containsOnlyKeys(BlockPath.STAGED);
      staging.assertAllReleased();
      TestNodes.fetchAndCheck(node, TestNodes.noStaging(), BATCHES, MOST, second.source(1, 3));
    }
  }

  private void assertGone(final NodeProcess owner) {
    final FakeStaging staging = new FakeStaging(BATCHES, MOST);
    staging.desert();
    try (Fetch fetcher =
        node.fetch(List.of(owner.source(1, 3)), staging, TestNodes.quiet(), () -> false)) {
      assertThatThrownBy(fetcher::next)
          .isInstanceOf(BlockFetchException.class)
          .hasMessageContaining("an executor is dead");
    }
  }
}
