package io.zerohop.shuffle.transport.ucx;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.zerohop.device.posix.Clock;
import io.zerohop.shuffle.ShuffleNode;
import io.zerohop.shuffle.TestBlocks;
import io.zerohop.shuffle.TestNodes;
import io.zerohop.shuffle.block.BlockPath;
import io.zerohop.shuffle.block.BlockSource;
import io.zerohop.shuffle.transport.FakeStaging;
import io.zerohop.shuffle.transport.ucx.engine.UcxException;
import io.zerohop.shuffle.transport.ucx.engine.UcxLoader;
import java.io.IOException;
import java.nio.file.Files;
import java.util.Map;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** What is left where libucx is not installed; the build runs it where the loader finds none. */
@Tag("no-libucx")
@Timeout(60)
class WithoutLibucxTest {
  private static final int SHUFFLE = 1;
  private static final int PARTITIONS = 10;
  private static final int MOST = 3_000;

  @TempDir private java.nio.file.Path base;
  private final LocalChannels channels = new LocalChannels();

  /** Or the other tests of this run would show nothing. */
  @Test
  void libucxIsNotFound() throws IOException {
    assertThatThrownBy(() -> UcxLoader.start(null, null, () -> {}, Clock.system()))
        .isInstanceOf(UcxException.class)
        .hasMessageContaining("libucp.so.0");
    assertThat(Files.readString(java.nio.file.Path.of("/proc/self/maps"))).doesNotContain("libucp");
  }

  @Test
  void blocksOfAnotherNodeAreStaged() {
    final FakeStaging staging = new FakeStaging(1, MOST);
    try (ShuffleNode owner = ShuffleNode.start(config("1"));
        ShuffleNode reader = ShuffleNode.start(config("2"))) {
      assertThat(owner.location().port()).isZero();
      TestBlocks.write(owner, SHUFFLE, 0, 1, PARTITIONS, MOST);
      final BlockSource source =
          TestBlocks.source("1", owner.location(), SHUFFLE, 0, 1, 1, PARTITIONS, MOST);
      assertThat(TestNodes.fetchAndCheck(reader, staging, 1, MOST, source))
          .isEqualTo(Map.of(BlockPath.STAGED, source.blocks().size()));
      staging.assertAllReleased();
      owner.unregisterShuffle(SHUFFLE);
      TestNodes.assertNothingHeld(owner);
    }
  }

  private ShuffleNode.Setup config(final String executor) {
    return TestNodes.config(base.resolve("s"), executor)
        .set("node.id", "node-" + executor)
        .ucx(onStart -> UcxLoader.start(null, null, onStart, Clock.system()), channels::open)
        .set("internal.ucx.emulatedGets", true);
  }
}
