package io.zerohop.spark.metrics;

import static org.assertj.core.api.Assertions.assertThat;

import io.zerohop.shuffle.block.Block;
import io.zerohop.spark.metrics.ReadMetrics.BlockCount;
import java.util.List;
import org.junit.jupiter.api.Test;

class BlockCountTest {
  private static Block block(final long mapId, final int partition) {
    return new Block(3, mapId, (int) mapId, partition, 100);
  }

  private static final List<Block> TWO_OUTPUTS =
      List.of(block(0, 4), block(0, 5), block(0, 7), block(1, 4), block(1, 6));

  @Test
  void neighboursOfOneMapOutputAreOneBlockOfABatch() {
    assertThat(new BlockCount(true).add(TWO_OUTPUTS)).isEqualTo(2);
  }

  @Test
  void withoutBatchesEachCounts() {
    assertThat(new BlockCount(false).add(TWO_OUTPUTS)).isEqualTo(5);
  }

  @Test
  void aMapOutputThatComesInPiecesCountsOnce() {
    final BlockCount count = new BlockCount(true);
    assertThat(count.add(List.of(block(7, 0), block(7, 1)))).isEqualTo(1);
    assertThat(count.add(List.of(block(7, 2), block(8, 0)))).isEqualTo(1);
    assertThat(count.add(List.of(block(7, 3)))).as("behind another one's").isZero();
    assertThat(count.add(List.of())).isZero();
  }
}
