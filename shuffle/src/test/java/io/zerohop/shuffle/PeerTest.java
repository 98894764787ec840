package io.zerohop.shuffle;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.zerohop.device.Leaks;
import io.zerohop.device.ZerohopException;
import io.zerohop.device.posix.Descriptor;
import io.zerohop.device.posix.Sockets;
import io.zerohop.shuffle.block.Block;
import io.zerohop.shuffle.block.BlockPath;
import io.zerohop.shuffle.block.BlockSource;
import io.zerohop.shuffle.block.Location;
import io.zerohop.shuffle.fetch.BlockFetchException;
import io.zerohop.shuffle.fetch.Fetch;
import io.zerohop.shuffle.pool.PoolFullException;
import io.zerohop.shuffle.transport.FakeStaging;
import io.zerohop.shuffle.transport.Transport.OwnerGoneException;
import io.zerohop.shuffle.write.MapOutput;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.util.EnumSet;
import java.util.List;
import java.util.Map;
import java.util.stream.Stream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/**
 * Two nodes that are peers, in one process for speed: the sockets and mappings are the real ones.
 */
class PeerTest {
  private static final int PARTITIONS = 150;
  private static final int MOST = 400;

  @TempDir private java.nio.file.Path base;
  private final Leaks leaks = new Leaks();
  private ShuffleNode owner;
  private ShuffleNode reader;

  @BeforeEach
  void start() {
    owner = TestNodes.start(base.resolve("s"), "owner");
    reader = TestNodes.start(base.resolve("s"), "reader");
  }

  @AfterEach
  void noLeaks() {
    reader.unregisterShuffle(1);
    TestNodes.assertNothingHeld(reader);
    reader.close();
    owner.unregisterShuffle(1);
    owner.unregisterShuffle(2);
    TestNodes.assertNothingHeld(owner);
    owner.close();
    leaks.check();
  }

  private BlockSource source(final int shuffleId, final int maps) {
    return TestBlocks.source("owner", owner.location(), shuffleId, 0, maps, 2, PARTITIONS, MOST);
  }

  private void write(final int shuffleId, final int maps) {
    for (int map = 0; map < maps; map++) {
      TestBlocks.write(owner, shuffleId, map, 2, PARTITIONS, MOST);
    }
  }

  private Fetch fetch(final BlockSource source) {
    return reader.fetch(List.of(source), TestNodes.noStaging(), TestNodes.quiet(), () -> false);
  }

  @Test
  void aPeerReadsInPlace() {
    write(1, 40);
    final Map<BlockPath, Integer> counts =
        TestNodes.fetchAndCheck(reader, TestNodes.noStaging(), 2, MOST, source(1, 40));
    assertThat(counts).containsOnlyKeys(BlockPath.PEER);
    assertThat(reader.stats().peers().readable()).isEqualTo(1);
    assertThat(Holdings.of(owner).readingPeers()).isEqualTo(1);
    assertThat(Holdings.of(reader).mappedSegments()).isEqualTo(owner.stats().segments() + 1);
    write(2, 3);
    TestNodes.fetchAndCheck(reader, TestNodes.noStaging(), 2, MOST, source(2, 3));
    assertThat(reader.stats().peers().readable()).as("connected once").isEqualTo(1);
  }

  @Test
  void chunksThatAreLinkedLaterAreFound() {
    for (int maps = 1; maps < 300; maps += 37) {
      for (int map = 0; map < maps; map++) {
        if (!owner.holds(1, map)) {
          TestBlocks.write(owner, 1, map, 1, 10, 20);
        }
      }
      TestNodes.fetchAndCheck(
          reader,
          TestNodes.noStaging(),
          1,
          20,
          TestBlocks.source("owner", owner.location(), 1, 0, maps, 1, 10, 20));
    }
  }

  @Test
  void unregisteringWaitsForThePeer() {
    write(1, 2);
    try (Fetch fetcher = fetch(source(1, 2))) {
      assertThat(fetcher.next()).isTrue();
      owner.unregisterShuffle(1);
      assertThat(Holdings.of(owner).retiredRegions()).isEqualTo(5);
      write(2, 20);
      do {
        final Block block = fetcher.block().block();
        assertThat(TestNodes.read(fetcher.block()))
            .isEqualTo(TestBlocks.block(1, block.mapId(), 2, block.partition(), MOST));
      } while (fetcher.next());
      assertThat(Holdings.of(owner).retiredRegions()).isEqualTo(5);
    }
    TestNodes.eventually("freed", () -> Holdings.of(owner).retiredRegions() == 0);
  }

  @Test
  void aShuffleThatIsWrittenAgainIsNotMistakenForItsPredecessor() {
    for (int round = 0; round < 10; round++) {
      for (int map = 0; map < 5; map++) {
        TestBlocks.write(owner, 1, 100 * round + map, 2, PARTITIONS, MOST);
      }
      TestNodes.fetchAndCheck(
          reader,
          TestNodes.noStaging(),
          2,
          MOST,
          TestBlocks.source("owner", owner.location(), 1, 100 * round, 5, 2, PARTITIONS, MOST));
      owner.unregisterShuffle(1);
      TestNodes.eventually("freed", () -> owner.stats().poolUsedBytes() == 0);
    }
  }

  @Test
  void retiredSegmentsAreUnmapped() throws IOException {
    final byte[][] large = {new byte[3 << 20]};
    for (int map = 0; map < 3; map++) {
      try (MapOutput writer = owner.newMapOutput(1, map, 1)) {
        writer.append(new TestBlocks.Source(large, 1 << 20));
        writer.commit();
      }
    }
    final List<Block> blocks =
        List.of(
            new Block(1, 0, 0, 0, 3 << 20),
            new Block(1, 1, 1, 0, 3 << 20),
            new Block(1, 2, 2, 0, 3 << 20));
    try (Fetch fetcher = fetch(new BlockSource("owner", owner.location(), null, blocks))) {
      assertThat(fetcher.next()).isTrue();
      assertThat(Holdings.of(reader).mappedSegments()).isEqualTo(5);
      owner.unregisterShuffle(1);
      while (fetcher.next()) {
        assertThat(fetcher.block().bytes()).isEqualTo(3 << 20);
      }
      assertThat(Holdings.of(reader).mappedSegments()).isEqualTo(5);
    }
    TestNodes.eventually("unmapped", () -> Holdings.of(reader).mappedSegments() == 2);
  }

  @Test
  void whatTheOwnerDoesNotListIsStaged() {
    write(1, 2);
    owner.remove(1, 1);
    final FakeStaging staging = new FakeStaging(2, MOST);
    final Map<BlockPath, Integer> counts =
        TestNodes.fetchAndCheck(reader, staging, 2, MOST, source(1, 2));
    assertThat(counts).containsOnlyKeys(BlockPath.PEER, BlockPath.STAGED);
    staging.assertAllReleased();
  }

  @Test
  void anOwnersOwnFilesAreStaged() {
    final FakeStaging staging = new FakeStaging(2, MOST);
    assertThat(TestNodes.fetchAndCheck(owner, staging, 2, MOST, source(1, 2)))
        .containsOnlyKeys(BlockPath.STAGED);
    staging.assertAllReleased();
  }

  @Test
  void anOwnerThatClosedIsGoneForWhoMayNotStage() {
    write(1, 2);
    final BlockSource source = source(1, 2);
    TestNodes.fetchAndCheck(reader, TestNodes.noStaging(), 2, MOST, source);
    owner.close();
    try (ShuffleNode strict =
            ShuffleNode.start(
                TestNodes.config(base.resolve("s"), "strict")
                    .set("paths", EnumSet.of(BlockPath.LOCAL, BlockPath.PEER)));
        Fetch fetcher =
            strict.fetch(List.of(source), TestNodes.noStaging(), TestNodes.quiet(), () -> false)) {
      assertThatThrownBy(fetcher::next)
          .isInstanceOfSatisfying(
              BlockFetchException.class, e -> assertThat(e.source()).isSameAs(source))
          .hasCauseInstanceOf(OwnerGoneException.class)
          .hasMessageContaining("owner");
    }
    // Others let the staged transport find out.
    final FakeStaging staging = new FakeStaging(2, MOST);
    assertThat(TestNodes.fetchAndCheck(reader, staging, 2, MOST, source))
        .containsOnlyKeys(BlockPath.STAGED);
    TestNodes.eventually("unmapped", () -> Holdings.of(reader).mappedSegments() == 0);
    owner = TestNodes.start(base.resolve("s"), "owner");
  }

  @Test
  void anOwnerThatClosedAndAnswersNowhereIsGone() {
    write(1, 2);
    final BlockSource source = source(1, 2);
    owner.close();
    final FakeStaging staging = new FakeStaging(2, MOST);
    staging.desert();
    assertThatThrownBy(() -> TestNodes.fetchAndCheck(reader, staging, 2, MOST, source))
        .isInstanceOf(BlockFetchException.class)
        .hasCauseInstanceOf(OwnerGoneException.class);
    owner = TestNodes.start(base.resolve("s"), "owner");
  }

  /** A cleaner of /tmp removed the file: the owner lives, and is not taken for dead. */
  @Test
  void anOwnerWhoseSocketFileVanishedIsStaged() throws IOException {
    write(1, 2);
    Files.delete(ownersSocket());
    assertStaged();
  }

  /** A neighbour of the same uid put a socket in its place that nobody serves. */
  @Test
  void anOwnerWithADeadSocketInItsPlaceIsStaged() throws IOException {
    write(1, 2);
    final java.nio.file.Path socket = ownersSocket();
    Files.delete(socket);
    Descriptor.close(Sockets.listen(socket.toString(), 1));
    assertStaged();
    Files.delete(socket);
    Files.createFile(socket);
    assertStaged();
    final FakeStaging deserted = new FakeStaging(2, MOST);
    deserted.desert();
    try (ShuffleNode third = TestNodes.start(base.resolve("s"), "third")) {
      assertThatThrownBy(() -> TestNodes.fetchAndCheck(third, deserted, 2, MOST, source(1, 2)))
          .hasCauseInstanceOf(OwnerGoneException.class)
          .hasMessageContaining("an executor is dead");
    }
  }

  private java.nio.file.Path ownersSocket() throws IOException {
    final List<java.nio.file.Path> sockets;
    try (Stream<java.nio.file.Path> files = Files.walk(base.resolve("s"))) {
      sockets = files.filter(f -> f.getFileName().toString().startsWith("owner-")).toList();
    }
    assertThat(sockets).hasSize(1);
    return sockets.get(0);
  }

  private void assertStaged() {
    final FakeStaging staging = new FakeStaging(2, MOST);
    assertThat(TestNodes.fetchAndCheck(reader, staging, 2, MOST, source(1, 2)))
        .containsOnlyKeys(BlockPath.STAGED);
    staging.assertAllReleased();
  }

  @Test
  void aNodeWhoseServerFailedChangesNothingAnyMore() throws IOException {
    write(1, 2);
    try (Fetch fetcher = fetch(source(1, 2));
        MapOutput writer = owner.newMapOutput(2, 0, PARTITIONS)) {
      assertThat(fetcher.next()).isTrue();
      owner.parts.serverFailed(new StackOverflowError("a bug"));
      owner.unregisterShuffle(1); // Freed memory must not be used again, lease or not.
      assertThatThrownBy(() -> writer.append(TestBlocks.batch(2, 0, 0, PARTITIONS, MOST)))
          .isInstanceOf(PoolFullException.class)
          .hasMessageContaining("frozen");
      do {
        final Block block = fetcher.block().block();
        assertThat(TestNodes.read(fetcher.block()))
            .isEqualTo(TestBlocks.block(1, block.mapId(), 2, block.partition(), MOST));
      } while (fetcher.next());
    }
    TestNodes.eventually("freed", () -> owner.stats().poolUsedBytes() == 0);
    assertThatThrownBy(() -> TestBlocks.write(owner, 2, 1, 1, PARTITIONS, MOST))
        .isInstanceOf(PoolFullException.class);
  }

  @Test
  void anOpenWindowIsReadToItsEndAfterItsOwnerClosed() {
    write(1, 2);
    try (Fetch fetcher = fetch(source(1, 2))) {
      assertThat(fetcher.next()).isTrue();
      owner.close();
      do {
        final Block block = fetcher.block().block();
        assertThat(TestNodes.read(fetcher.block()))
            .isEqualTo(TestBlocks.block(1, block.mapId(), 2, block.partition(), MOST));
      } while (fetcher.next());
    }
    owner = TestNodes.start(base.resolve("s"), "owner");
  }

  @Test
  void aPeerThatLeavesHoldsNothingUp() {
    write(1, 2);
    final ShuffleNode third = TestNodes.start(base.resolve("s"), "third");
    final Fetch fetcher =
        third.fetch(List.of(source(1, 2)), TestNodes.noStaging(), TestNodes.quiet(), () -> false);
    assertThat(fetcher.next()).isTrue();
    owner.unregisterShuffle(1);
    assertThat(Holdings.of(owner).retiredRegions()).isEqualTo(5);
    assertThatThrownBy(third::close)
        .isInstanceOf(IllegalStateException.class)
        .hasMessageContaining("fetch windows");
    TestNodes.eventually("its leases are dropped", () -> Holdings.of(owner).retiredRegions() == 0);
    // Its mapping outlives its connection, and what it reads now is refused at the window's end,
    // or when it is asked for.
    assertThatThrownBy(fetcher::checkIntact)
        .isInstanceOf(BlockFetchException.class)
        .hasMessageContaining("connection to the owner was lost");
    assertThatThrownBy(
            () -> {
              while (fetcher.next()) {
                assertThat(fetcher.block().bytes()).isPositive();
              }
            })
        .isInstanceOf(BlockFetchException.class);
    fetcher.close();
    third.close();
  }

  @Test
  void pathsCanBeForbidden() {
    write(1, 1);
    try (ShuffleNode third =
        ShuffleNode.start(
            TestNodes.config(base.resolve("s"), "third")
                .set("paths", EnumSet.of(BlockPath.LOCAL, BlockPath.STAGED)))) {
      final FakeStaging staging = new FakeStaging(2, MOST);
      assertThat(TestNodes.fetchAndCheck(third, staging, 2, MOST, source(1, 1)))
          .containsOnlyKeys(BlockPath.STAGED);
      staging.assertAllReleased();
    }
    try (ShuffleNode third =
            ShuffleNode.start(
                TestNodes.config(base.resolve("s"), "third")
                    .set("paths", EnumSet.of(BlockPath.LOCAL)));
        Fetch fetcher =
            third.fetch(
                List.of(source(1, 1)), TestNodes.noStaging(), TestNodes.quiet(), () -> false)) {
      assertThatThrownBy(fetcher::next)
          .isInstanceOf(ZerohopException.class)
          .hasMessageContaining("spark.zerohop.paths");
    }
  }

  @Test
  void anotherSecretFolderOrNodeIsStaged() {
    write(1, 1);
    final Location here = owner.location();
    final Location elsewhere =
        new Location("00000000", here.folderId(), here.incarnation(), 0, here.socket());
    final Location otherFolder =
        new Location(here.bootId(), "0000000000000000", here.incarnation(), 0, here.socket());
    for (final Location location : new Location[] {null, elsewhere, otherFolder}) {
      final FakeStaging staging = new FakeStaging(2, MOST);
      final BlockSource source = TestBlocks.source("owner", location, 1, 0, 1, 2, PARTITIONS, MOST);
      assertThat(TestNodes.fetchAndCheck(reader, staging, 2, MOST, source))
          .containsOnlyKeys(BlockPath.STAGED);
      staging.assertAllReleased();
    }
    try (ShuffleNode stranger =
        ShuffleNode.start(
            TestNodes.config(
                base.resolve("s"),
                "stranger",
                "another secret, as long as needed".getBytes(StandardCharsets.UTF_8)))) {
      final FakeStaging staging = new FakeStaging(2, MOST);
      assertThat(TestNodes.fetchAndCheck(stranger, staging, 2, MOST, source(1, 1)))
          .containsOnlyKeys(BlockPath.STAGED);
      assertThat(Holdings.of(owner).readingPeers()).isZero();
    }
  }
}
