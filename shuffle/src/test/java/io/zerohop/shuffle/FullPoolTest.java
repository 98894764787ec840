package io.zerohop.shuffle;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.zerohop.device.Leaks;
import io.zerohop.device.ZerohopException;
import io.zerohop.shuffle.block.BlockSource;
import io.zerohop.shuffle.block.StoredOutput;
import io.zerohop.shuffle.pool.PoolFullException;
import io.zerohop.shuffle.write.MapOutputWriter;
import java.io.ByteArrayOutputStream;
import org.agrona.concurrent.UnsafeBuffer;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Map outputs for which there is no room, or that nobody commits. */
class FullPoolTest {
  private static final int PARTITIONS = 200;
  private static final int MOST = 300;
  @TempDir private java.nio.file.Path base;
  private final Leaks leaks = new Leaks();
  private ShuffleNode node;

  @BeforeEach
  void start() {
    node = TestNodes.start(base.resolve("s"), "1");
  }

  @AfterEach
  void noLeaks() {
    for (final StoredOutput stored : node.stored()) {
      node.unregisterShuffle(stored.shuffleId());
    }
    TestNodes.assertNothingHeld(node);
    node.close();
    assertThat(base.resolve("s")).as("the socket folder is removed").doesNotExist();
    leaks.check();
  }

  private BlockSource source(final int shuffleId, final int maps, final int batches) {
    return TestBlocks.source("1", node.location(), shuffleId, 0, maps, batches, PARTITIONS, MOST);
  }

  @Test
  void uncommittedOutputsLeaveNothing() {
    try (MapOutputWriter writer = node.newMapOutput(1, 1, PARTITIONS)) {
      writer.append(TestBlocks.batch(1, 1, 0, PARTITIONS, MOST));
      assertThat(node.stats().poolUsedBytes()).isPositive();
      assertThat(node.stats().outputs().writers()).isEqualTo(1);
      assertThat(node.holds(1, 1)).isFalse();
    }
    TestNodes.assertNothingHeld(node);
  }

  @Test
  void aFullPoolRefusesAndKeepsWhatItHas() {
    final int most = 40_000;
    try (MapOutputWriter writer = node.newMapOutput(1, 1, PARTITIONS)) {
      final int[] batches = {0};
      assertThatThrownBy(
              () -> {
                for (; ; batches[0]++) {
                  writer.append(TestBlocks.batch(1, 1, batches[0], PARTITIONS, most));
                }
              })
          .isInstanceOf(PoolFullException.class)
          .hasMessageContaining("spark.zerohop.pool.size")
          .extracting(e -> ((ZerohopException) e).category())
          .isEqualTo(ZerohopException.Category.FALLBACK);
      assertThat(batches[0]).isPositive();
      for (int partition = 0; partition < PARTITIONS; partition++) {
        assertThat(written(writer, partition))
            .isEqualTo(TestBlocks.block(1, 1, batches[0], partition, most));
      }
    }
  }

  private static byte[] written(final MapOutputWriter writer, final int partition) {
    final ByteArrayOutputStream bytes = new ByteArrayOutputStream();
    writer.forEachExtent(
        partition,
        (address, length) -> {
          final byte[] extent = new byte[length];
          new UnsafeBuffer(address, length).getBytes(0, extent);
          bytes.writeBytes(extent);
        });
    return bytes.toByteArray();
  }

  @Test
  void aCommitThatFindsNoRoomLeavesTheBatchesReadable() {
    final MapOutputWriter filler = node.newMapOutput(2, 0, 1);
    try (MapOutputWriter writer = node.newMapOutput(1, 1, PARTITIONS)) {
      writer.append(TestBlocks.batch(1, 1, 0, PARTITIONS, MOST));
      writer.append(TestBlocks.batch(1, 1, 1, PARTITIONS, MOST));
      for (int bytes = 1 << 20; bytes >= 4096; bytes /= 2) {
        fill(filler, bytes);
      }
      final NodeStats before = node.stats();
      for (int attempt = 0; attempt < 2; attempt++) {
        assertThatThrownBy(writer::commit).isInstanceOf(PoolFullException.class);
        assertThat(node.stats()).isEqualTo(before);
        assertThat(node.holds(1, 1)).isFalse();
        for (int partition = 0; partition < PARTITIONS; partition++) {
          assertThat(written(writer, partition))
              .isEqualTo(TestBlocks.block(1, 1, 2, partition, MOST));
        }
      }
      filler.close();
      writer.commit();
    }
    TestNodes.fetchAndCheck(
        node,
        TestNodes.noStaging(),
        2,
        MOST,
        TestBlocks.source("1", node.location(), 1, 1, 1, 2, PARTITIONS, MOST));
  }

  private static void fill(final MapOutputWriter writer, final int bytes) {
    final TestBlocks.Source source = new TestBlocks.Source(new byte[][] {new byte[bytes]}, bytes);
    try {
      while (true) {
        writer.append(source);
      }
    } catch (final PoolFullException e) {
      assertThat(writer.bytes()).isPositive();
    }
  }
}
