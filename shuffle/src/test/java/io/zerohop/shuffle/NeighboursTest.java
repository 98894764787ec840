package io.zerohop.shuffle;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;

import io.zerohop.device.Leaks;
import io.zerohop.device.TestClock;
import io.zerohop.device.Topology;
import io.zerohop.shuffle.block.BlockPath;
import io.zerohop.shuffle.block.BlockSource;
import io.zerohop.shuffle.transport.FakeStaging;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Executors of a node that get to know one another before a reader needs it. */
class NeighboursTest {
  private static final int PARTITIONS = 20;
  private static final int MOST = 300;
  private static final Topology SEES =
      new Topology(
          List.of(new Topology.Gpu("GPU-a", "0000:01:00.0", "")),
          new int[1][1],
          new boolean[][] {{true}});

  @TempDir private java.nio.file.Path base;
  private final Leaks leaks = new Leaks();

  /** Neighbours are met every second. */
  private final TestClock clock = TestClock.running();

  private final TestClock.Flight flight = clock.fly();

  @AfterEach
  void noLeaks() {
    flight.close();
    leaks.check();
  }

  private ShuffleNode node(final String executorId) {
    return node(executorId, "GPU-" + executorId, SEES);
  }

  private ShuffleNode node(final String executorId, final String gpu, final Topology sees) {
    return ShuffleNode.start(
        TestNodes.config(base.resolve("s"), executorId).neighbours().gpu(gpu, sees).clock(clock));
  }

  private ShuffleNode node(final String executorId, final byte[] secret) {
    return ShuffleNode.start(
        TestNodes.config(base.resolve("s"), executorId, secret).neighbours().clock(clock));
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
      TestNodes.eventually("all know all", () -> owner.stats().peers().readable() == 1);
      TestNodes.eventually(
          "root and segment are mapped", () -> Holdings.of(reader).mappedSegments() == 2);
      final BlockSource source = source(owner);
      assertThat(TestNodes.fetchAndCheck(reader, TestNodes.noStaging(), 1, MOST, source))
          .isEqualTo(Map.of(BlockPath.PEER, source.blocks().size()));
      assertThat(Holdings.of(reader).mappedSegments()).isEqualTo(2);
      assertThat(reader.stats().peers().readable())
          .as("the reader uses the same connection")
          .isEqualTo(1);
    }
  }

  @Test
  void whatIsFreedIsUnmappedAndStaysSo() {
    try (ShuffleNode owner =
            ShuffleNode.start(
                TestNodes.config(base.resolve("s"), "owner")
                    .neighbours()
                    .set("segment.idle", java.time.Duration.ZERO)
                    .clock(clock));
        ShuffleNode reader = node("reader")) {
      TestBlocks.write(owner, 1, 0, 1, PARTITIONS, MOST);
      TestNodes.eventually("mapped", () -> Holdings.of(reader).mappedSegments() == 2);
      owner.unregisterShuffle(1);
      TestNodes.eventually("unmapped", () -> Holdings.of(reader).mappedSegments() == 1);
    }
  }

  @Test
  void oneThatDiesIsForgottenByTheOthers() {
    try (ShuffleNode reader = node("reader")) {
      try (ShuffleNode owner = node("owner")) {
        TestNodes.eventually("met", () -> reader.stats().peers().readable() == 1);
        assertThat(owner.location()).isNotNull();
      }
      TestNodes.eventually("gone", () -> Holdings.of(reader).mappedSegments() == 0);
      try (ShuffleNode next = node("owner")) {
        TestNodes.eventually("its successor is met", () -> reader.stats().peers().readable() == 1);
        assertThat(Holdings.of(next).readingPeers()).isLessThanOrEqualTo(1);
      }
    }
  }

  /** Masters that start in the same second name their applications alike: one folder for two. */
  @Test
  void applicationsOfOneNameKeepToThemselves() {
    final byte[] secret = "the secret of the other application".getBytes(UTF_8);
    try (ShuffleNode owner = node("owner");
        ShuffleNode reader = node("reader");
        ShuffleNode otherOwner = node("owner", secret);
        ShuffleNode otherReader = node("reader", secret)) {
      TestBlocks.write(owner, 1, 0, 1, PARTITIONS, MOST);
      TestBlocks.write(otherOwner, 1, 0, 1, PARTITIONS, MOST);
      for (final ShuffleNode each : List.of(owner, reader, otherOwner, otherReader)) {
        TestNodes.eventually(
            "knows its own",
            () -> Holdings.of(each).readingPeers() == 1 && each.stats().peers().readable() == 1);
      }
      for (final List<ShuffleNode> pair :
          List.of(List.of(owner, reader), List.of(otherOwner, otherReader))) {
        final BlockSource source =
            TestBlocks.source("owner", pair.get(0).location(), 1, 0, 1, 1, PARTITIONS, MOST);
        assertThat(TestNodes.fetchAndCheck(pair.get(1), TestNodes.noStaging(), 1, MOST, source))
            .isEqualTo(Map.of(BlockPath.PEER, source.blocks().size()));
      }
      final BlockSource foreign =
          TestBlocks.source("owner", owner.location(), 1, 0, 1, 1, PARTITIONS, MOST);
      final FakeStaging staging = new FakeStaging(1, MOST);
      assertThat(TestNodes.fetchAndCheck(otherReader, staging, 1, MOST, foreign))
          .as("even where it is told of the other's blocks")
          .containsOnlyKeys(BlockPath.STAGED);
      for (final ShuffleNode each : List.of(owner, reader, otherOwner, otherReader)) {
        assertThat(Holdings.of(each).readingPeers()).isEqualTo(1);
        assertThat(each.stats().peers().readable()).isEqualTo(1);
      }
    }
  }

  @Test
  void executorsThatShareAGpuAreNamed() {
    try (ShuffleNode one = node("one", "GPU-a", SEES);
        ShuffleNode two = node("two", "GPU-a", Topology.NONE)) {
      TestNodes.eventually("met", () -> one.problems().size() == 2);
      TestNodes.eventually("met", () -> two.problems().size() == 2);
      assertThat(one.problems().get(0).where()).isEqualTo("executors one, two, GPU GPU-a");
      assertThat(one.problems().get(1).why()).contains("executors two see 0 GPUs");
    }
  }
}
