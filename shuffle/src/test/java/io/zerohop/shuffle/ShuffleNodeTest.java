package io.zerohop.shuffle;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.zerohop.device.ZerohopException;
import io.zerohop.shuffle.block.Block;
import io.zerohop.shuffle.block.BlockPath;
import io.zerohop.shuffle.block.BlockSource;
import io.zerohop.shuffle.block.Location;
import io.zerohop.shuffle.block.StoredOutput;
import io.zerohop.shuffle.catalog.MapOutputLease;
import io.zerohop.shuffle.fetch.BlockFetchException;
import io.zerohop.shuffle.fetch.Fetch;
import io.zerohop.shuffle.fetch.FetchedBlock;
import io.zerohop.shuffle.transport.FakeStaging;
import io.zerohop.shuffle.write.MapOutput;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.util.List;
import java.util.Map;
import java.util.concurrent.atomic.AtomicBoolean;
import org.agrona.concurrent.UnsafeBuffer;
import org.junit.jupiter.api.Test;

/** One node alone: writing, reading in place, freeing. */
class ShuffleNodeTest extends OneNodeFixture {
  @Test
  void everyBlockComesBackAsItWasWritten() {
    for (int map = 0; map < 70; map++) {
      final long[] lengths = TestBlocks.write(node, 3, map, 1 + map % 3, PARTITIONS, MOST);
      for (int partition = 0; partition < PARTITIONS; partition++) {
        assertThat(lengths[partition])
            .isEqualTo(TestBlocks.block(3, map, 1 + map % 3, partition, MOST).length);
      }
    }
    for (int map = 0; map < 70; map++) {
      final BlockSource source =
          TestBlocks.source("1", node.location(), 3, map, 1, 1 + map % 3, PARTITIONS, MOST);
      final Map<BlockPath, Integer> counts =
          TestNodes.fetchAndCheck(node, TestNodes.noStaging(), 1 + map % 3, MOST, source);
      assertThat(counts).isEqualTo(Map.of(BlockPath.LOCAL, source.blocks().size()));
    }
    assertThat(node.fetches().moved(BlockPath.LOCAL).blocks()).isPositive();
    assertThat(Holdings.of(node).outputs()).isEqualTo(70);
  }

  @Test
  void manyWindowsHoldTwoLeasesAtMost() {
    for (int map = 0; map < 20; map++) {
      TestBlocks.write(node, 1, map, 1, PARTITIONS, MOST);
    }
    try (Fetch fetcher =
        node.fetch(
            List.of(source(1, 20, 1)), TestNodes.noStaging(), TestNodes.quiet(), () -> false)) {
      while (fetcher.next()) {
        assertThat(node.stats().leases().open()).isBetween(1, 2);
      }
    }
    assertThat(node.stats().leases().open()).isZero();
  }

  @Test
  void aFetcherKnowsItsLastBlock() {
    TestBlocks.write(node, 1, 0, 1, PARTITIONS, MOST);
    final BlockSource here = TestBlocks.source("1", node.location(), 1, 0, 1, 1, PARTITIONS, MOST);
    final Location elsewhere = null;
    final BlockSource staged = TestBlocks.source("9", elsewhere, 2, 0, 1, 1, PARTITIONS, MOST);
    final int blocks = here.blocks().size() + staged.blocks().size();
    for (final List<BlockSource> sources :
        List.of(List.of(here), List.of(staged), List.of(here, staged), List.of(staged, here))) {
      int left = sources.size() == 2 ? blocks : sources.get(0).blocks().size();
      try (Fetch fetcher =
          node.fetch(sources, new FakeStaging(1, MOST), TestNodes.quiet(), () -> false)) {
        while (fetcher.next()) {
          left--;
          assertThat(fetcher.hasMore()).as("%s blocks left", left).isEqualTo(left > 0);
        }
      }
      assertThat(left).isZero();
    }
  }

  @Test
  void extentsAndStreamGiveTheSameBytes() throws IOException {
    TestBlocks.write(node, 1, 5, 3, PARTITIONS, MOST);
    final BlockSource source =
        TestBlocks.source("1", node.location(), 1, 5, 1, 3, PARTITIONS, MOST);
    try (Fetch fetcher =
        node.fetch(List.of(source), TestNodes.noStaging(), TestNodes.quiet(), () -> false)) {
      while (fetcher.next()) {
        final FetchedBlock block = fetcher.block();
        final ByteArrayOutputStream bytes = new ByteArrayOutputStream();
        for (int i = 0; i < block.extentCount(); i++) {
          final byte[] extent = new byte[block.extentLength(i)];
          new UnsafeBuffer(block.extentAddress(i), extent.length).getBytes(0, extent);
          bytes.write(extent);
        }
        assertThat(bytes.toByteArray()).isEqualTo(TestNodes.read(block));
      }
    }
    try (MapOutputLease lease = node.lease(1, 5)) {
      for (int partition = 0; partition < PARTITIONS; partition++) {
        final byte[] expected = TestBlocks.block(1, 5, 3, partition, MOST);
        assertThat(lease.bytes(partition)).isEqualTo(expected.length);
        try (InputStream in = lease.stream(partition)) {
          assertThat(in.readAllBytes()).isEqualTo(expected);
        }
      }
    }
  }

  @Test
  void unregisteringWaitsForTheReader() {
    TestBlocks.write(node, 1, 0, 2, PARTITIONS, MOST);
    try (Fetch fetcher =
        node.fetch(
            List.of(source(1, 1, 2)), TestNodes.noStaging(), TestNodes.quiet(), () -> false)) {
      assertThat(fetcher.next()).isTrue();
      node.unregisterShuffle(1);
      assertThat(node.holds(1, 0)).isFalse();
      assertThat(Holdings.of(node).retiredRegions()).isEqualTo(3);
      // New memory must not land on what is still being read.
      for (int map = 0; map < 10; map++) {
        TestBlocks.write(node, 2, map, 1, PARTITIONS, MOST);
      }
      do {
        final Block block = fetcher.block().block();
        assertThat(TestNodes.read(fetcher.block()))
            .isEqualTo(TestBlocks.block(1, 0, 2, block.partition(), MOST));
      } while (fetcher.next());
      assertThat(Holdings.of(node).retiredRegions()).isEqualTo(3);
    }
    TestNodes.eventually("retired", () -> Holdings.of(node).retiredRegions() == 0);
  }

  @Test
  void aLeaseOutlivesItsMapOutput() throws IOException {
    TestBlocks.write(node, 1, 0, 2, PARTITIONS, MOST);
    final InputStream late;
    try (MapOutputLease lease = node.lease(1, 0)) {
      assertThat(node.remove(1, 0)).isTrue();
      assertThat(node.remove(1, 0)).isFalse();
      assertThat(node.lease(1, 0)).isNull();
      node.unregisterShuffle(1);
      for (int partition = 0; partition < PARTITIONS; partition++) {
        try (InputStream in = lease.stream(partition)) {
          assertThat(in.readAllBytes()).isEqualTo(TestBlocks.block(1, 0, 2, partition, MOST));
        }
      }
      assertThat(node.stats().leases().open()).isEqualTo(1);
      late = lease.stream(0);
    }
    assertThatThrownBy(late::read).isInstanceOf(IOException.class);
  }

  @Test
  void commitsOfAnUnregisteredShuffleAreRefused() throws IOException {
    try (MapOutput zombie = node.newMapOutput(1, 0, PARTITIONS)) {
      zombie.append(TestBlocks.batch(1, 0, 0, PARTITIONS, MOST));
      node.unregisterShuffle(1);
      assertThatThrownBy(zombie::commit)
          .isInstanceOf(ZerohopException.class)
          .hasMessageContaining("unregistered");
    }
    TestNodes.assertNothingHeld(node);
    TestBlocks.write(node, 1, 1, 1, PARTITIONS, MOST);
    assertThat(node.holds(1, 1)).as("a writer that began afterwards is welcome").isTrue();
  }

  @Test
  void aMapOutputCanBeWrittenAgain() {
    TestBlocks.write(node, 1, 0, 1, PARTITIONS, MOST);
    TestBlocks.write(node, 1, 0, 2, PARTITIONS, MOST);
    TestNodes.fetchAndCheck(node, TestNodes.noStaging(), 2, MOST, source(1, 1, 2));
    assertThat(node.stored()).containsExactly(new StoredOutput(1, 0));
    node.remove(1, 0);
    TestBlocks.write(node, 1, 0, 3, PARTITIONS, MOST);
    TestNodes.fetchAndCheck(node, TestNodes.noStaging(), 3, MOST, source(1, 1, 3));
  }

  @Test
  void aBlockThatShouldHaveBytesButHasNoneIsAFailure() {
    TestBlocks.write(node, 1, 0, 1, PARTITIONS, MOST);
    int empty = 0;
    while (TestBlocks.block(1, 0, 1, empty, MOST).length > 0) {
      empty++;
    }
    final Block block = new Block(1, 0, 0, empty, 10);
    final BlockSource source = new BlockSource("1", node.location(), "address", List.of(block));
    try (Fetch fetcher =
        node.fetch(List.of(source), TestNodes.noStaging(), TestNodes.quiet(), () -> false)) {
      assertThatThrownBy(fetcher::next)
          .isInstanceOfSatisfying(
              BlockFetchException.class,
              e -> {
                assertThat(e.block()).isEqualTo(block);
                assertThat(e.source()).isSameAs(source);
              });
    }
  }

  @Test
  void damagedBytesAreNamed() {
    TestBlocks.write(node, 1, 0, 1, PARTITIONS, MOST);
    try (MapOutputLease lease = node.lease(1, 0)) {
      lease.forEachExtent(
          source(1, 1, 1).blocks().get(3).partition(),
          (address, length) -> {
            final UnsafeBuffer bytes = new UnsafeBuffer(address, length);
            bytes.putByte(length - 1, (byte) (bytes.getByte(length - 1) ^ 4));
          });
    }
    try (Fetch fetcher =
        node.fetch(
            List.of(source(1, 1, 1)), TestNodes.noStaging(), TestNodes.quiet(), () -> false)) {
      for (int i = 0; i < 3; i++) {
        assertThat(fetcher.next()).isTrue();
      }
      assertThatThrownBy(fetcher::next)
          .isInstanceOf(BlockFetchException.class)
          .hasMessageMatching(
              ".*segment \\d+, offset \\d+.*CRC32C is \\p{XDigit}.* of executor 1, .*");
    }
  }

  @Test
  void aCancelledFetchEnds() {
    TestBlocks.write(node, 1, 0, 1, PARTITIONS, MOST);
    final AtomicBoolean cancelled = new AtomicBoolean();
    try (Fetch fetcher =
        node.fetch(
            List.of(source(1, 1, 1)), TestNodes.noStaging(), TestNodes.quiet(), cancelled::get)) {
      assertThat(fetcher.next()).isTrue();
      cancelled.set(true);
      assertThatThrownBy(fetcher::next).isInstanceOf(io.zerohop.device.WaitException.class);
    }
  }

  @Test
  void blocksMayBeLargerThanASegmentTogether() throws IOException {
    // Six extents of 1.9 MiB in one block: dedicated segments, a stream over all of them.
    final byte[][] blocks = {new byte[0], new byte[1_900_000], new byte[200]};
    new java.util.Random(7).nextBytes(blocks[1]);
    try (MapOutput writer = node.newMapOutput(1, 0, 3)) {
      for (int batch = 0; batch < 6; batch++) {
        writer.append(new TestBlocks.Source(blocks, 1 << 20));
      }
      assertThat(writer.commit()).containsExactly(0, 6 * 1_900_000, 1200);
    }
    final Block block = new Block(1, 0, 0, 1, 6 * 1_900_000);
    try (Fetch fetcher =
        node.fetch(
            List.of(new BlockSource("1", node.location(), null, List.of(block))),
            TestNodes.noStaging(),
            TestNodes.quiet(),
            () -> false)) {
      assertThat(fetcher.next()).isTrue();
      assertThat(fetcher.block().extentCount()).isEqualTo(6);
      final byte[] all = TestNodes.read(fetcher.block());
      for (int batch = 0; batch < 6; batch++) {
        assertThat(java.util.Arrays.copyOfRange(all, batch * 1_900_000, (batch + 1) * 1_900_000))
            .isEqualTo(blocks[1]);
      }
      assertThat(fetcher.next()).isFalse();
    }
  }

  @Test
  void aClosedNodeTouchesNoMemoryThatIsGone() {
    final ShuffleNode other = TestNodes.start(base.resolve("s"), "2");
    TestBlocks.write(other, 1, 0, 1, PARTITIONS, MOST);
    final MapOutputLease lease = other.lease(1, 0);
    final Fetch late =
        other.fetch(
            List.of(TestBlocks.source("2", other.location(), 1, 0, 1, 1, PARTITIONS, MOST)),
            (source, blocks, sink) ->
                blocks.forEach(block -> sink.failed(block, new IOException("shutting down"))),
            TestNodes.quiet(),
            () -> false);
    assertThatThrownBy(other::close)
        .isInstanceOf(IllegalStateException.class)
        .hasMessageContaining("lease on map 0 of shuffle 1");
    assertThat(lease.bytes(1)).isEqualTo(TestBlocks.block(1, 0, 1, 1, MOST).length);
    lease.close();
    other.close();
    other.close();
    assertThatThrownBy(late::next)
        .isInstanceOf(BlockFetchException.class)
        .hasMessageContaining("shutting down");
    late.close();
    assertThat(other.lease(1, 0)).isNull();
    assertThat(other.remove(1, 0)).isFalse();
    other.unregisterShuffle(1);
    assertThat(other.stats().poolUsedBytes()).isZero();
  }
}
