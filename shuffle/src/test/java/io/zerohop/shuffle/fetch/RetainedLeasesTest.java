package io.zerohop.shuffle.fetch;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.zerohop.device.Leaks;
import io.zerohop.shuffle.Block;
import io.zerohop.shuffle.ShuffleNode;
import io.zerohop.shuffle.TestBlocks;
import io.zerohop.shuffle.TestNodes;
import java.io.IOException;
import java.io.InputStream;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** What finished fetchers leave to their task: one lease an owner, and blocks that stay. */
class RetainedLeasesTest {
  private static final int PARTITIONS = 40;
  private static final int MOST = 500;
  private static final int SHUFFLES = 150;

  @TempDir private java.nio.file.Path base;
  private final Leaks leaks = new Leaks();
  private final RetainedLeases leases = new RetainedLeases();
  private ShuffleNode owner;
  private ShuffleNode peer;

  @BeforeEach
  void start() {
    owner = TestNodes.start(base.resolve("s"), "owner");
    peer = TestNodes.start(base.resolve("s"), "peer");
  }

  @AfterEach
  void noLeaks() {
    leases.close();
    owner.stored().forEach(stored -> owner.unregisterShuffle(stored.shuffleId()));
    TestNodes.assertNothingHeld(peer);
    peer.close();
    TestNodes.assertNothingHeld(owner);
    owner.close();
    leaks.check();
  }

  /** All in two windows, of which the second one has one block: both are open at the end. */
  private BlockFetcher fetch(final ShuffleNode reader, final int shuffleId) {
    final BlockSource all =
        TestBlocks.source("owner", owner.location(), shuffleId, 0, 1, 1, PARTITIONS, MOST);
    final int last = all.blocks().size() - 1;
    return reader.fetch(
        List.of(
            new BlockSource("owner", all.location(), null, all.blocks().subList(0, last)),
            new BlockSource("owner", all.location(), null, all.blocks().subList(last, last + 1))),
        TestNodes.noStaging(),
        TestNodes.quiet(),
        () -> false);
  }

  private void write(final int shuffleId) {
    TestBlocks.write(owner, shuffleId, 0, 1, PARTITIONS, MOST);
  }

  /** Hands out all blocks. */
  private static List<FetchedBlock> drain(final BlockFetcher fetcher) {
    final List<FetchedBlock> blocks = new ArrayList<>();
    while (fetcher.next()) {
      blocks.add(fetcher.block());
    }
    return blocks;
  }

  private static void assertRight(final FetchedBlock fetched) {
    final Block block = fetched.block();
    assertThat(TestNodes.read(fetched))
        .isEqualTo(TestBlocks.block(block.shuffleId(), 0, 1, block.partition(), MOST));
  }

  /** A task of many readers, more than a peer has lanes, while its shuffles are given up. */
  private void manyReaders(final ShuffleNode reader) throws IOException {
    final List<FetchedBlock> blocks = new ArrayList<>();
    for (int shuffle = 0; shuffle < SHUFFLES; shuffle++) {
      write(shuffle);
      try (BlockFetcher fetcher = fetch(reader, shuffle)) {
        blocks.addAll(drain(fetcher));
        assertThat(reader.stats().openLeases()).isBetween(2, 3);
        fetcher.retire(leases);
        fetcher.retire(leases);
        assertThat(fetcher.next()).isFalse();
      }
      assertThat(reader.stats().openLeases()).isEqualTo(1);
      assertThat(leases.leases()).isEqualTo(1);
      owner.unregisterShuffle(shuffle);
    }
    assertThat(owner.stats().retiredRegions()).isEqualTo(2 * SHUFFLES);
    blocks.forEach(RetainedLeasesTest::assertRight);
    leases.checkIntact();
    final InputStream late = blocks.get(0).stream();
    leases.close();
    assertThat(leases.isOpen()).isFalse();
    assertThat(reader.stats().openLeases()).isZero();
    assertThatThrownBy(late::read).isInstanceOf(IOException.class);
    TestNodes.eventually("freed", () -> owner.stats().retiredRegions() == 0);
  }

  @Test
  void aTaskOfManyReadersHoldsOneLeaseOnItsOwnMemory() throws IOException {
    manyReaders(owner);
  }

  @Test
  void aTaskOfManyReadersHoldsOneLeaseOnAPeersMemory() throws IOException {
    manyReaders(peer);
  }

  @Test
  void theOldestLeaseIsKeptInWhateverOrderReadersEnd() {
    write(1);
    write(2);
    write(3);
    final BlockFetcher first = fetch(peer, 1);
    assertThat(first.next()).isTrue();
    final BlockFetcher second = fetch(peer, 2);
    final List<FetchedBlock> blocks = new ArrayList<>(drain(second));
    second.retire(leases);
    final BlockFetcher third = fetch(peer, 3);
    blocks.addAll(drain(third));
    blocks.addAll(drain(first)); // Its windows are newer than the third one's now.
    third.retire(leases);
    first.retire(leases);
    assertThat(peer.stats().openLeases()).isEqualTo(1);
    for (int shuffle = 1; shuffle <= 3; shuffle++) {
      owner.unregisterShuffle(shuffle);
    }
    for (int shuffle = 10; shuffle < 40; shuffle++) {
      write(shuffle);
    }
    blocks.forEach(RetainedLeasesTest::assertRight);
    assertThat(owner.stats().retiredRegions()).isEqualTo(6);
    first.close();
    second.close();
    third.close();
    blocks.forEach(RetainedLeasesTest::assertRight);
  }

  /** The window that is handed over last was opened first of all. */
  @Test
  void anOlderLeaseTakesTheNewerOnesPlace() {
    write(1);
    write(2);
    final BlockFetcher early =
        owner.fetch(
            List.of(TestBlocks.source("owner", owner.location(), 1, 0, 1, 1, 9, MOST)),
            TestNodes.noStaging(),
            TestNodes.quiet(),
            () -> false);
    assertThat(early.next()).isTrue();
    final FetchedBlock old = early.block();
    final BlockFetcher late = fetch(owner, 2);
    final List<FetchedBlock> blocks = drain(late);
    late.retire(leases);
    while (early.next()) {
      assertRight(early.block());
    }
    early.retire(leases);
    assertThat(leases.leases()).isEqualTo(1);
    assertThat(owner.stats().openLeases()).isEqualTo(1);
    owner.unregisterShuffle(2);
    owner.unregisterShuffle(1);
    assertThat(owner.stats().retiredRegions()).isEqualTo(4);
    blocks.forEach(RetainedLeasesTest::assertRight);
    assertRight(old);
    early.close();
    late.close();
  }

  @Test
  void segmentsStayMappedUntilTheLeasesEnd() {
    write(1);
    write(2);
    for (int shuffle = 1; shuffle <= 2; shuffle++) {
      try (BlockFetcher fetcher = fetch(peer, shuffle)) {
        drain(fetcher).forEach(RetainedLeasesTest::assertRight);
        fetcher.retire(leases);
      }
    }
    assertThat(peer.stats().mappedPeerSegments()).isEqualTo(2);
    owner.close();
    TestNodes.eventually("disconnected", () -> peer.stats().peers() == 0);
    leases.checkIntact(); // The owner froze its memory before it went.
    assertThat(peer.stats().mappedPeerSegments()).isEqualTo(2);
    leases.close();
    TestNodes.eventually("unmapped", () -> peer.stats().mappedPeerSegments() == 0);
    owner = TestNodes.start(base.resolve("s"), "owner");
  }

  @Test
  void aLostConnectionShowsAtTheEndOfTheTask() {
    write(1);
    final BlockFetcher fetcher = fetch(peer, 1);
    drain(fetcher);
    fetcher.retire(leases);
    fetcher.close();
    leases.checkIntact();
    assertThatThrownBy(peer::close).hasMessageContaining("fetch windows");
    TestNodes.eventually("the leases are dropped", () -> owner.stats().connectedPeers() == 0);
    assertThatThrownBy(leases::checkIntact)
        .isInstanceOf(BlockFetchException.class)
        .hasMessageContaining("connection to its owner was lost");
  }

  @Test
  void retiringIsForFetchersThatAreThrough() {
    write(1);
    final BlockFetcher fetcher = fetch(owner, 1);
    assertThatThrownBy(() -> fetcher.retire(leases)).hasMessageContaining("handed out");
    assertThat(fetcher.next()).isTrue();
    assertThatThrownBy(() -> fetcher.retire(leases)).hasMessageContaining("handed out");
    final List<FetchedBlock> blocks = drain(fetcher);
    leases.close();
    leases.close();
    assertThatThrownBy(() -> fetcher.retire(leases)).hasMessageContaining("leases");
    assertThatThrownBy(leases::checkIntact).hasMessageContaining("leases");
    assertThat(owner.stats().openLeases()).isZero();
    assertThatThrownBy(() -> blocks.get(0).stream().read()).isInstanceOf(IOException.class);
    fetcher.close();
    assertThatThrownBy(() -> fetcher.retire(leases)).hasMessageContaining("closed");
  }
}
