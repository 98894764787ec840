package io.zerohop.shuffle;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.zerohop.device.Leaks;
import io.zerohop.device.WaitException;
import io.zerohop.shuffle.block.Block;
import io.zerohop.shuffle.block.DamagedOutputException;
import io.zerohop.shuffle.pool.PoolFullException;
import io.zerohop.shuffle.pool.Tier;
import io.zerohop.shuffle.write.MapOutput;
import io.zerohop.shuffle.write.WrittenBlocks;
import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import org.agrona.UnsafeAccess;
import org.assertj.core.api.ThrowableAssert.ThrowingCallable;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Map outputs whose memory, copies or files fail: what was written before is there, or says so. */
class FailedOutputTest {
  private static final long POOL = 512 << 10;

  /** Has room for the payloads of some batches. */
  private static final long DEVICE_POOL = 64 << 10;

  private static final int SMALLEST = 64;

  @TempDir private java.nio.file.Path base;
  private final Leaks leaks = new Leaks();
  private final DeviceOnlyGpu gpu = new DeviceOnlyGpu();
  private final List<MapOutput> fillers = new ArrayList<>();
  private ShuffleNode node;
  private GpuBlocks made;

  /** Of another place than what is made first, which may not have been copied yet. */
  private GpuBlocks madeNext;

  @BeforeEach
  void start() {
    node =
        ShuffleNode.start(
            TestNodes.config(base.resolve("s"), "owner")
                .set("device.pool.size", DEVICE_POOL)
                .set("device.segment.size", DEVICE_POOL)
                .set("pool.size", POOL)
                .set("segment.size", POOL / 4),
            gpu);
    made = new GpuBlocks(gpu);
    madeNext = new GpuBlocks(gpu);
  }

  @AfterEach
  void noLeaks() throws IOException {
    made.close();
    madeNext.close();
    for (final MapOutput filler : fillers) {
      filler.close();
    }
    node.unregisterShuffle(1);
    TestNodes.assertNothingHeld(node);
    node.close();
    leaks.check();
  }

  private void copiesOfThisThread(final DeviceOnlyGpu.Failure how) {
    gpu.fail(Thread.currentThread().getName(), how);
  }

  /** Takes host memory until there is no room for so many bytes. */
  private MapOutput fill(final int smallest) throws IOException {
    final MapOutput filler = node.newMapOutput(2, fillers.size(), 1);
    fillers.add(filler);
    for (int bytes = 64 << 10; bytes >= smallest; bytes /= 2) {
      try {
        while (true) {
          filler.append(bytes(bytes));
        }
      } catch (final PoolFullException e) {
        // Perhaps for less.
      }
    }
    return filler;
  }

  /** Takes so much of GPU memory that there is room for one batch. */
  private void fillGpu() throws IOException {
    final MapOutput filler = node.newMapOutput(3, 0, 1, Tier.DEVICE, null);
    fillers.add(filler);
    filler.append(bytes((int) DEVICE_POOL / 2));
  }

  private static TestBlocks.Source bytes(final int count) {
    return new TestBlocks.Source(new byte[][] {new byte[count]}, count);
  }

  private void assertFirstBatchOnly(final MapOutput writer) {
    for (int partition = 0; partition < GpuBlocks.PARTITIONS; partition++) {
      assertThat(TestBlocks.written(writer, partition))
          .isEqualTo(GpuBlocks.expected(new Block(1, 0, 0, partition, 1), 1));
    }
  }

  /** Copies of earlier batches are not aborted by one that has no room. */
  @Test
  void aBatchWithoutRoomForItsHeadersLeavesEarlierOnesThatAreUnderWay() throws IOException {
    try (MapOutput writer = node.newMapOutput(1, 0, GpuBlocks.PARTITIONS)) {
      gpu.hold();
      made.append(writer, 0, 0);
      fill(SMALLEST);
      assertThatThrownBy(() -> madeNext.append(writer, 0, 1)).isInstanceOf(PoolFullException.class);
      gpu.letGo();
      assertFirstBatchOnly(writer);
    }
  }

  @Test
  void aBatchWithoutPinnedMemoryLeavesEarlierOnesThatAreUnderWay() throws IOException {
    gpu.refusePins(true);
    fillGpu();
    try (MapOutput writer = node.newMapOutput(1, 0, GpuBlocks.PARTITIONS)) {
      gpu.hold();
      made.append(writer, 0, 0);
      gpu.refuseBuffers(true);
      assertThatThrownBy(() -> madeNext.append(writer, 0, 1))
          .isInstanceOf(PoolFullException.class)
          .hasMessageContaining("pinned");
      gpu.refuseBuffers(false);
      gpu.letGo();
      assertFirstBatchOnly(writer);
    }
  }

  /** A copy that fails ends the stream, and with it the copies of earlier batches. */
  @Test
  void anOutputWhoseCopiesFailedIsNotCommitted() throws IOException {
    fillGpu();
    try (MapOutput writer = node.newMapOutput(1, 0, GpuBlocks.PARTITIONS)) {
      gpu.hold();
      made.append(writer, 0, 0);
      gpu.refusePins(true); // So that the next copies are waited for.
      copiesOfThisThread(DeviceOnlyGpu.Failure.TIMED_OUT);
      assertThatThrownBy(() -> madeNext.append(writer, 0, 1)).isInstanceOf(WaitException.class);
      copiesOfThisThread(DeviceOnlyGpu.Failure.NONE);
      gpu.letGo();
      final List<ThrowingCallable> all =
          List.of(
              writer::commit,
              () -> madeNext.append(writer, 0, 1),
              () -> TestBlocks.written(writer, 0));
      for (final ThrowingCallable use : all) {
        assertThatThrownBy(use)
            .isInstanceOf(IllegalStateException.class)
            .hasMessage("copies of this map output failed: it can only be closed");
      }
      assertThat(node.holds(1, 0)).isFalse();
    }
  }

  @Test
  void aLastBatchIsTakenOnceHoweverOftenItsCommitFails() throws IOException {
    final int length = 100;
    final MapOutput spare = node.newMapOutput(3, 0, 1);
    fillers.add(spare);
    spare.append(bytes(4 * length));
    final MapOutput filler = fill(SMALLEST);
    try (MapOutput writer = node.newMapOutput(1, 0, 1)) {
      spare.close(); // Room for the batch, but for no entry of the catalog.
      for (int attempt = 0; attempt < 3; attempt++) {
        assertThatThrownBy(() -> writer.commit(bytes(length)))
            .isInstanceOf(PoolFullException.class);
        assertThat(TestBlocks.written(writer, 0)).isEmpty();
      }
      filler.close();
      assertThat(writer.commit(bytes(length))).containsExactly(length);
    }
  }

  @Test
  void aBatchOnTheGpuNeedsMemoryThatTheHostReads() {
    try (MapOutput writer = MapOutput.inFiles(1, 0, GpuBlocks.PARTITIONS, new UnusedFiles(true))) {
      assertThatThrownBy(() -> made.append(writer, 0, 0))
          .isInstanceOf(IllegalArgumentException.class);
    }
  }

  /** A file has checksums of its own, which would be right. */
  @Test
  void damageInHostMemoryGoesToNoFile() throws IOException {
    final int length = 1000;
    try (MapOutput writer = node.newMapOutput(1, 0, 1, Tier.HOST, new UnusedFiles(true))) {
      writer.append(bytes(length));
      WrittenBlocks.forEachExtent(
          writer,
          0,
          (address, bytes) -> UnsafeAccess.UNSAFE.putByte(address + length / 2, (byte) 1));
      fill(SMALLEST);
      assertThatThrownBy(() -> writer.commit(bytes(length)))
          .isInstanceOf(DamagedOutputException.class)
          .hasMessageContaining("partition 0 in segment");
    }
  }

  @Test
  void anErrorBetweenPublishingAndTheEndOfTheCopiesLeavesNothing() throws IOException {
    try (MapOutput writer = node.newMapOutput(1, 0, GpuBlocks.PARTITIONS)) {
      made.append(writer, 0, 0);
      copiesOfThisThread(DeviceOnlyGpu.Failure.OUT_OF_MEMORY);
      assertThatThrownBy(writer::commit).isInstanceOf(OutOfMemoryError.class);
      assertThat(node.holds(1, 0)).isFalse();
    }
  }

  /** Who frees what the copies read goes by that. It is kept, so this takes another process. */
  @Test
  void copiesThatNeverEndAreSaidAtEachCloseWhateverElseFails() throws Exception {
    try (NodeProcess owner = new NodeProcess(base.resolve("s"), NodeProcess.WITH_DEVICE)) {
      assertThat(owner.ask("stick"))
          .isEqualTo(
              "[FATAL [], FATAL [java.lang.IllegalStateException: cannot be deleted], FATAL []]");
      assertThat(Long.parseLong(owner.ask("used"))).isPositive();
      owner.kill();
    }
  }
}
