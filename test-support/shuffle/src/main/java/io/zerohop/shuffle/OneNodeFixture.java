package io.zerohop.shuffle;

import static org.assertj.core.api.Assertions.assertThat;

import io.zerohop.device.Leaks;
import io.zerohop.shuffle.block.BlockSource;
import io.zerohop.shuffle.block.StoredOutput;
import java.nio.file.Path;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.io.TempDir;

/** One node alone, of which nothing is left at the end. */
abstract class OneNodeFixture {
  static final int PARTITIONS = 200;
  static final int MOST = 300;

  @TempDir Path base;
  private final Leaks leaks = new Leaks();
  ShuffleNode node;

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

  BlockSource source(final int shuffleId, final int maps, final int batches) {
    return TestBlocks.source("1", node.location(), shuffleId, 0, maps, batches, PARTITIONS, MOST);
  }
}
