package io.zerohop.shuffle;

import static org.assertj.core.api.Assertions.assertThat;

import io.zerohop.device.Leaks;
import io.zerohop.device.Topology;
import io.zerohop.shuffle.fetch.BlockSource;
import java.util.Map;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Executors of a node that get to know one another before a reader needs it. */
class NeighboursTest {
  private static final int PARTITIONS = 20;
  private static final int MOST = 300;

  @TempDir private java.nio.file.Path base;
  private final Leaks leaks = new Leaks();

  @AfterEach
  void noLeaks() {
    leaks.check();
  }

  private ShuffleNode node(final String executorId) {
    return node(executorId, "GPU-" + executorId, "2 GPUs");
  }

  private ShuffleNode node(final String executorId, final String gpu, final String sees) {
    return ShuffleNode.start(
        TestNodes.config(base.resolve("s"), executorId)
            .neighbours(true)
            .view(new Topology.View(executorId, gpu, sees))
            .build());
  }

  private static BlockSource source(final ShuffleNode owner) {
    return TestBlocks.source("owner", owner.location(), 1, 0, 3, 1, PARTITIONS, MOST);
  }

  @Test
  void segmentsAreMappedBeforeTheFirstReader() {
    try (ShuffleNode owner = node("owner");
        ShuffleNode reader = node("reader")) {
      for (int map = 0; map < 3; map++) {
        TestBlocks.write(owner, 1, map, 1, PARTITIONS, MOST);
      }
      TestNodes.eventually("all know all", () -> owner.stats().peers() == 1);
      TestNodes.eventually(
          "root and segment are mapped", () -> reader.stats().mappedPeerSegments() == 2);
      final BlockSource source = source(owner);
      assertThat(TestNodes.fetchAndCheck(reader, TestNodes.noStaging(), 1, MOST, source))
          .isEqualTo(Map.of(Path.PEER, source.blocks().size()));
      assertThat(reader.stats().mappedPeerSegments()).isEqualTo(2);
      assertThat(reader.stats().peers()).as("the reader uses the same connection").isEqualTo(1);
    }
  }

  @Test
  void whatIsFreedIsUnmappedAndStaysSo() {
    try (ShuffleNode owner =
            ShuffleNode.start(
                TestNodes.config(base.resolve("s"), "owner")
                    .neighbours(true)
                    .keepEmpty(java.time.Duration.ZERO)
                    .build());
        ShuffleNode reader = node("reader")) {
      TestBlocks.write(owner, 1, 0, 1, PARTITIONS, MOST);
      TestNodes.eventually("mapped", () -> reader.stats().mappedPeerSegments() == 2);
      owner.unregisterShuffle(1);
      TestNodes.eventually("unmapped", () -> reader.stats().mappedPeerSegments() == 1);
    }
  }

  @Test
  void oneThatDiesIsForgottenByTheOthers() {
    try (ShuffleNode reader = node("reader")) {
      try (ShuffleNode owner = node("owner")) {
        TestNodes.eventually("met", () -> reader.stats().peers() == 1);
        assertThat(owner.location()).isNotNull();
      }
      TestNodes.eventually("gone", () -> reader.stats().mappedPeerSegments() == 0);
      try (ShuffleNode next = node("owner")) {
        TestNodes.eventually("its successor is met", () -> reader.stats().peers() == 1);
        assertThat(next.stats().connectedPeers()).isLessThanOrEqualTo(1);
      }
    }
  }

  @Test
  void executorsThatShareAGpuAreNamed() {
    try (ShuffleNode one = node("one", "GPU-a", "2 GPUs");
        ShuffleNode two = node("two", "GPU-a", "1 GPU")) {
      TestNodes.eventually("met", () -> one.problems().size() == 2);
      TestNodes.eventually("met", () -> two.problems().size() == 2);
      assertThat(String.join("\n", one.problems()))
          .contains("executors one, two share GPU GPU-a", "executors two see 1 GPU");
    }
  }
}
