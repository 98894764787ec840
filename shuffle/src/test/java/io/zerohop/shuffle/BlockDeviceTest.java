package io.zerohop.shuffle;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.zerohop.device.Leaks;
import io.zerohop.device.WaitException;
import io.zerohop.shuffle.block.Block;
import io.zerohop.shuffle.block.BlockPath;
import io.zerohop.shuffle.block.BlockSource;
import io.zerohop.shuffle.catalog.MapOutputLease;
import io.zerohop.shuffle.fetch.Fetch;
import io.zerohop.shuffle.pool.PoolFullException;
import io.zerohop.shuffle.pool.Tier;
import io.zerohop.shuffle.transport.FakeStaging;
import io.zerohop.shuffle.write.MapOutput;
import java.io.IOException;
import java.io.InputStream;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Nodes whose blocks lie on a device that the host cannot read. */
class BlockDeviceTest {
  private static final int PARTITIONS = 60;
  private static final int MOST = 500;
  private static final int WINDOW_BYTES = 20_000;

  @TempDir private java.nio.file.Path base;
  private final Leaks leaks = new Leaks();
  private DeviceOnlyGpu ownersDevice;
  private ShuffleNode owner;
  private ShuffleNode reader;

  @BeforeEach
  void start() {
    ownersDevice = new DeviceOnlyGpu();
    owner = node("owner", ownersDevice);
    reader = node("reader", new DeviceOnlyGpu());
  }

  private ShuffleNode node(final String executorId, final DeviceOnlyGpu device) {
    return ShuffleNode.start(
        TestNodes.config(base.resolve("s"), executorId).set("fetch.window.size", WINDOW_BYTES),
        device);
  }

  @AfterEach
  void noLeaks() {
    for (final ShuffleNode node : List.of(reader, owner)) {
      node.unregisterShuffle(1);
      TestNodes.assertNothingHeld(node);
      node.close();
    }
    leaks.check();
  }

  private BlockSource write(final int maps) {
    for (int map = 0; map < maps; map++) {
      TestBlocks.write(owner, 1, map, 2, PARTITIONS, MOST);
    }
    return TestBlocks.source("owner", owner.location(), 1, 0, maps, 2, PARTITIONS, MOST);
  }

  @Test
  void ownerAndPeerReadWhatWasWritten() {
    final BlockSource source = write(30);
    for (final Map.Entry<ShuffleNode, BlockPath> by :
        Map.of(owner, BlockPath.LOCAL, reader, BlockPath.PEER).entrySet()) {
      final Map<BlockPath, Integer> counts =
          TestNodes.fetchAndCheck(by.getKey(), TestNodes.noStaging(), 2, MOST, source);
      assertThat(counts).isEqualTo(Map.of(by.getValue(), source.blocks().size()));
      assertThat(by.getKey().stats().receiveBuffers().bytes()).isZero();
    }
  }

  @Test
  void aSegmentThatCannotBeExportedIsStagedAndNothingElseIsLost() throws IOException {
    final BlockSource source = write(1);
    try (MapOutput writer = owner.newMapOutput(2, 0, PARTITIONS, Tier.HOST, null)) {
      writer.append(TestBlocks.batch(2, 0, 0, PARTITIONS, MOST));
      writer.commit();
    }
    final BlockSource onHost =
        TestBlocks.source("owner", owner.location(), 2, 0, 1, 1, PARTITIONS, MOST);
    ownersDevice.refuseExports(true);
    try (Fetch open =
        reader.fetch(List.of(onHost), TestNodes.noStaging(), TestNodes.quiet(), () -> false)) {
      assertThat(open.next()).isTrue();
      final FakeStaging staging = new FakeStaging(2, MOST);
      for (int i = 0; i < 2; i++) {
        assertThat(TestNodes.fetchAndCheck(reader, staging, 2, MOST, source))
            .isEqualTo(Map.of(BlockPath.STAGED, source.blocks().size()));
      }
      staging.assertAllReleased();
      assertThat(Holdings.of(owner).readingPeers()).isEqualTo(1);
      ownersDevice.refuseExports(false);
      TestNodes.eventually(
          "it is asked for again",
          () ->
              TestNodes.fetchAndCheck(reader, staging, 2, MOST, source)
                  .containsKey(BlockPath.PEER));
      do {
        final Block block = open.block().block();
        assertThat(TestNodes.read(open.block()))
            .isEqualTo(TestBlocks.block(2, 0, 1, block.partition(), MOST));
      } while (open.next());
    }
    owner.unregisterShuffle(2);
  }

  @Test
  void windowsKeepToTheirBytes() {
    final BlockSource source = write(30);
    long most = 0;
    try (Fetch fetcher =
        reader.fetch(List.of(source), TestNodes.noStaging(), TestNodes.quiet(), () -> false)) {
      while (fetcher.next()) {
        most = Math.max(most, reader.stats().receiveBuffers().bytes());
      }
    }
    assertThat(most).isBetween(1L, 3L * (WINDOW_BYTES + 2 * MOST * 8));
  }

  @Test
  void anInterruptedTaskFreesNothingThatIsStillBeingCopied() throws IOException {
    final BlockSource source = write(2);
    try (MapOutput writer = owner.newMapOutput(1, 9, PARTITIONS, Tier.DEVICE, null)) {
      ownersDevice.interruptNext();
      assertThatThrownBy(() -> writer.append(TestBlocks.batch(1, 9, 0, PARTITIONS, MOST)))
          .isInstanceOf(WaitException.class);
    }
    try (Fetch fetcher =
        owner.fetch(List.of(source), TestNodes.noStaging(), TestNodes.quiet(), () -> false)) {
      ownersDevice.interruptNext();
      assertThatThrownBy(fetcher::next).hasMessageContaining("could not be copied");
    }
    assertThat(owner.stats().receiveBuffers().bytes()).isZero();
    assertThat(TestNodes.fetchAndCheck(owner, TestNodes.noStaging(), 2, MOST, source))
        .containsOnlyKeys(BlockPath.LOCAL);
  }

  @Test
  void aNodeThatCannotStartClosesItsDevice() throws Exception {
    final java.nio.file.Path file = java.nio.file.Files.createFile(base.resolve("file"));
    final DeviceOnlyGpu device = new DeviceOnlyGpu();
    assertThatThrownBy(
            () -> ShuffleNode.start(TestNodes.config(file.resolve("s"), "third"), device))
        .isInstanceOf(RuntimeException.class);
    assertThat(device.isClosed()).isTrue();
  }

  @Test
  void holdersOnTheHostGetCopies() throws Exception {
    write(1);
    try (MapOutputLease lease = owner.lease(1, 0)) {
      for (int partition = 0; partition < PARTITIONS; partition++) {
        final byte[] expected = TestBlocks.block(1, 0, 2, partition, MOST);
        assertThat(lease.bytes(partition)).isEqualTo(expected.length);
        try (InputStream in = lease.stream(partition)) {
          assertThat(in.readAllBytes()).isEqualTo(expected);
        }
      }
    }
  }

  @Test
  void whatTheHostCannotReadIsNotLookedAt() {
    write(1);
    try (MapOutputLease lease = owner.lease(1, 0)) {
      assertThat(lease.isInHostMemory()).isFalse();
      lease.checkIntact();
      lease.checkIntact(0);
    }
  }

  @Test
  void whatDidNotFitCanStillBeWrittenToAFile() throws IOException {
    try (MapOutput writer = owner.newMapOutput(1, 7, 1, Tier.DEVICE, null)) {
      final byte[] first = new byte[3 << 20];
      java.util.Arrays.fill(first, (byte) 5);
      writer.append(new TestBlocks.Source(new byte[][] {first}, 1 << 20));
      assertThatThrownBy(
              () ->
                  writer.append(new TestBlocks.Source(new byte[][] {new byte[15 << 20]}, 1 << 20)))
          .isInstanceOf(PoolFullException.class);
      assertThat(TestBlocks.written(writer, 0)).isEqualTo(first);
    }
  }
}
