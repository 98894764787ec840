package io.zerohop.spark.sent;

import static org.assertj.core.api.Assertions.assertThat;

import io.zerohop.device.TestClock;
import io.zerohop.device.posix.Deadline;
import io.zerohop.shuffle.TestNodes;
import io.zerohop.shuffle.block.BlockPath;
import io.zerohop.shuffle.block.BlockSource;
import io.zerohop.shuffle.block.Location;
import java.io.IOException;
import java.time.Duration;
import java.util.Map;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.api.io.TempDir;

/** What a network or a leaving executor does to blocks that are sent. */
@Timeout(120)
@ExtendWith(QuietNetwork.class)
class SentFaultsTest {
  /** To a reader that asks nothing meanwhile: for its answers, and for what it is told. */
  private static final int MAX_ATTEMPTS = 4;

  @TempDir private java.nio.file.Path folder;
  private SentNodes nodes;
  private SentNodes.Member owner;
  private SentNodes.Member reader;
  private PortProxy toReader;

  @BeforeEach
  void start() throws IOException {
    nodes = new SentNodes(folder, Map.of());
    owner = nodes.start("owner");
    reader = nodes.start("reader");
    toReader = reader.proxy();
    nodes.write();
  }

  @AfterEach
  void nothingIsHeld() throws IOException {
    nodes.close();
  }

  private Map<BlockPath, Integer> read() {
    return reader.read();
  }

  @Test
  void blocksThatWereDamagedOnTheWayAreSentOnceMore() {
    toReader.flip(1);
    assertThat(read()).containsOnlyKeys(BlockPath.SENT);
  }

  @Test
  void whatIsDamagedTwiceIsStaged() {
    toReader.flip(Integer.MAX_VALUE);
    final Map<BlockPath, Integer> paths = read();
    assertThat(paths).containsKey(BlockPath.STAGED);
  }

  @Test
  void aConnectionThatBreaksInAMessageIsMadeAnew() {
    toReader.resetAfter(SentNodes.MOST);
    assertThat(read().values().stream().mapToInt(Integer::intValue).sum())
        .isEqualTo(nodes.source().blocks().size());
    assertThat(toReader.hasReset()).isTrue();
    assertThat(reader.node().fetches().moved(BlockPath.SENT).blocks()).isPositive();
  }

  @Test
  void whoClosesEachConnectionIsNotConnectedWithoutEnd() throws Exception {
    assertThat(read()).containsOnlyKeys(BlockPath.SENT);
    toReader.closeAll();
    TestNodes.eventually("it is tried once more", () -> toReader.closedAtOnce() > 0);
    assertThat(
            Deadline.in(Duration.ofSeconds(1))
                .await(
                    () -> toReader.closedAtOnce() > MAX_ATTEMPTS,
                    millis -> Thread.sleep(Math.min(10, millis))))
        .as("more often than the reader has asked")
        .isFalse();
  }

  @Test
  @SuppressWarnings("try") // A flight is there to be closed.
  void whatNothingIsHeardOfIsStaged() {
    assertThat(read()).containsOnlyKeys(BlockPath.SENT);
    toReader.pause(true);
    try (TestClock.Flight flight = reader.clock().fly()) {
      assertThat(read()).as("after half of the request's limit").containsKey(BlockPath.STAGED);
    }
  }

  @Test
  void blocksOfAnOwnerThatLeavesAreStaged() {
    owner.port().leave();
    assertThat(read()).containsOnlyKeys(BlockPath.STAGED);
  }

  @Test
  void aReaderThatLeavesHasBlocksStaged() {
    reader.port().leave();
    assertThat(read()).containsOnlyKeys(BlockPath.STAGED);
  }

  @Test
  void anOwnerThatDoesNotSendIsStaged() {
    final BlockSource old = nodes.source();
    final Location location = old.location();
    final Location silent =
        new Location(
            location.bootId(), location.folderId(), location.incarnation(), 0, location.socket());
    assertThat(reader.read(new BlockSource(old.executorId(), silent, old.address(), old.blocks())))
        .containsOnlyKeys(BlockPath.STAGED);
  }
}
