package io.zerohop.shuffle;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.zerohop.device.ZerohopException;
import io.zerohop.shuffle.pool.PoolFullException;
import io.zerohop.shuffle.write.MapOutput;
import java.io.IOException;
import org.junit.jupiter.api.Test;

/** Map outputs for which there is no room, or that nobody commits. */
class FullPoolTest extends OneNodeFixture {
  @Test
  void uncommittedOutputsLeaveNothing() throws IOException {
    try (MapOutput writer = node.newMapOutput(1, 1, PARTITIONS)) {
      writer.append(TestBlocks.batch(1, 1, 0, PARTITIONS, MOST));
      assertThat(node.stats().poolUsedBytes()).isPositive();
      assertThat(Holdings.of(node).writers()).isEqualTo(1);
      assertThat(node.holds(1, 1)).isFalse();
    }
    TestNodes.assertNothingHeld(node);
  }

  @Test
  void aFullPoolRefusesAndKeepsWhatItHas() throws IOException {
    final int most = 40_000;
    try (MapOutput writer = node.newMapOutput(1, 1, PARTITIONS)) {
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
        assertThat(TestBlocks.written(writer, partition))
            .isEqualTo(TestBlocks.block(1, 1, batches[0], partition, most));
      }
    }
  }

  @Test
  void aCommitThatFindsNoRoomLeavesTheBatchesReadable() throws IOException {
    final MapOutput filler = node.newMapOutput(2, 0, 1);
    try (MapOutput writer = node.newMapOutput(1, 1, PARTITIONS)) {
      writer.append(TestBlocks.batch(1, 1, 0, PARTITIONS, MOST));
      writer.append(TestBlocks.batch(1, 1, 1, PARTITIONS, MOST));
      for (int bytes = 1 << 20; bytes >= 4096; bytes /= 2) {
        fill(filler, bytes);
      }
      final NodeStats before = node.stats();
      final Holdings held = Holdings.of(node);
      for (int attempt = 0; attempt < 2; attempt++) {
        assertThatThrownBy(writer::commit).isInstanceOf(PoolFullException.class);
        assertThat(node.stats()).isEqualTo(before);
        assertThat(Holdings.of(node)).isEqualTo(held);
        assertThat(node.holds(1, 1)).isFalse();
        for (int partition = 0; partition < PARTITIONS; partition++) {
          assertThat(TestBlocks.written(writer, partition))
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

  private static void fill(final MapOutput writer, final int bytes) throws IOException {
    final TestBlocks.Source source = new TestBlocks.Source(new byte[][] {new byte[bytes]}, bytes);
    try {
      while (true) {
        writer.append(source);
      }
    } catch (final PoolFullException e) {
      assertThat(TestBlocks.written(writer, 0)).isNotEmpty();
    }
  }
}
