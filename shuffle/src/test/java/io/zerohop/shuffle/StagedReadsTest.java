package io.zerohop.shuffle;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.zerohop.device.ChildJvm;
import io.zerohop.device.ZerohopException;
import io.zerohop.shuffle.block.Block;
import io.zerohop.shuffle.block.BlockSource;
import io.zerohop.shuffle.block.Location;
import io.zerohop.shuffle.block.ReadSide;
import io.zerohop.shuffle.fetch.Fetch;
import io.zerohop.shuffle.transport.FakeStaging;
import java.io.IOException;
import java.io.InputStream;
import java.nio.file.Path;
import java.util.EnumSet;
import java.util.List;
import org.junit.jupiter.api.Test;

/** Reads of a process that shares no memory, and cannot even load the native library. */
class StagedReadsTest {
  private static final int MOST = 500;
  private static final Location HERE =
      new Location("01234567", "0123456789abcdef", 7, 0, "2-0000000000000007");

  @Test
  void allBlocksAreStagedWhereverTheyLie() throws IOException {
    readEverything();
  }

  @Test
  void nothingNativeIsNeeded() throws IOException, InterruptedException {
    final List<String> noLibrary = List.of("env", "JDK_JAVA_OPTIONS=-Dos.arch=none");
    try (ChildJvm reader = ChildJvm.start(noLibrary, StagedReadsTest.class)) {
      assertThat(reader.exitCode()).isZero();
    }
  }

  /** Fails where the process has the native library, or cannot read without it. */
  public static void main(final String[] arguments) throws IOException {
    assertThatThrownBy(() -> ShuffleNode.start(config()))
        .isInstanceOf(ZerohopException.class)
        .hasMessageContaining("no native library for this system");
    readEverything();
  }

  @Test
  void aSettingThatForbidsStagingIsNamed() {
    final ShuffleNode.Setup peersOnly =
        config().set("paths", EnumSet.of(io.zerohop.shuffle.block.BlockPath.PEER));
    try (Fetch fetcher = fetch(peersOnly, new FakeStaging(1, MOST))) {
      assertThatThrownBy(fetcher::next)
          .isInstanceOf(ZerohopException.class)
          .hasMessageContaining("this executor shares no memory")
          .hasMessageContaining("spark.zerohop.paths");
    }
  }

  private static ShuffleNode.Setup config() {
    return TestNodes.config(Path.of("nowhere"), "1");
  }

  private static Fetch fetch(final ShuffleNode.Setup config, final FakeStaging staging) {
    final List<BlockSource> sources =
        List.of(
            TestBlocks.source("beside", HERE, 1, 0, 4, 1, 10, MOST),
            TestBlocks.source("elsewhere", null, 1, 4, 4, 1, 10, MOST));
    return config
        .stagedFetches()
        .begin(sources, staging, TestNodes.quiet(), ReadSide.HOST, () -> false);
  }

  private static void readEverything() throws IOException {
    final FakeStaging staging = new FakeStaging(1, MOST);
    int blocks = 0;
    try (Fetch fetcher = fetch(config(), staging)) {
      while (fetcher.next()) {
        final Block block = fetcher.block().block();
        assertThat(fetcher.block().path()).isEqualTo(io.zerohop.shuffle.block.BlockPath.STAGED);
        try (InputStream in = fetcher.block().stream()) {
          assertThat(in.readAllBytes())
              .isEqualTo(TestBlocks.block(1, block.mapId(), 1, block.partition(), MOST));
        }
        blocks++;
      }
    }
    assertThat(blocks)
        .isEqualTo(TestBlocks.source("all", null, 1, 0, 8, 1, 10, MOST).blocks().size());
    staging.assertAllReleased();
  }
}
