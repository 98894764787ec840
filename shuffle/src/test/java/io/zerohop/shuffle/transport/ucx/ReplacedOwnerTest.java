package io.zerohop.shuffle.transport.ucx;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.zerohop.device.Leaks;
import io.zerohop.device.posix.Clock;
import io.zerohop.shuffle.ShuffleNode;
import io.zerohop.shuffle.TestBlocks;
import io.zerohop.shuffle.TestNodes;
import io.zerohop.shuffle.block.Block;
import io.zerohop.shuffle.block.BlockPath;
import io.zerohop.shuffle.block.BlockSource;
import io.zerohop.shuffle.block.Location;
import io.zerohop.shuffle.fetch.BlockFetchException;
import io.zerohop.shuffle.fetch.Fetch;
import io.zerohop.shuffle.log.ShuffleCode;
import io.zerohop.shuffle.transport.FakeStaging;
import io.zerohop.shuffle.transport.SharedTransfers;
import io.zerohop.shuffle.transport.Transport.OwnerGoneException;
import java.time.Duration;
import java.util.EnumSet;
import java.util.List;
import java.util.Queue;
import java.util.concurrent.ConcurrentLinkedQueue;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** An owner at whose port another one answers, with blocks of the same numbers. */
@Timeout(60)
class ReplacedOwnerTest {
  private static final Duration LIMIT = Duration.ofSeconds(30);
  private static final int MOST = 2_000;

  @TempDir private java.nio.file.Path base;
  private final Leaks leaks = new Leaks();
  private final LocalCarriers carriers = new LocalCarriers();
  private final Queue<BlockSource> ended = new ConcurrentLinkedQueue<>();
  private final FakeStaging staging =
      new FakeStaging(1, MOST) {
        @Override
        public void ended(final BlockSource source) {
          ended.add(source);
        }
      };
  private final SharedTransfers shared =
      new SharedTransfers(staging, any -> true, 1, LIMIT, Clock.system());

  private ShuffleNode another;
  private ShuffleNode reader;

  @BeforeEach
  void start() {
    another = start("1");
    reader = start("2");
  }

  private ShuffleNode start(final String executor) {
    return ShuffleNode.start(
        TestNodes.config(base.resolve("s"), executor)
            .set("node.id", "node-" + executor)
            .set("paths", EnumSet.of(BlockPath.SENT, BlockPath.STAGED))
            .carrier(carriers.of(executor)));
  }

  @AfterEach
  void noLeaks() {
    staging.assertAllReleased();
    shared.close();
    for (final ShuffleNode node : List.of(reader, another)) {
      TestNodes.assertNothingHeld(node);
      node.close();
    }
    leaks.check();
  }

  /** Of an earlier life at the address of the one that answers there now. */
  private BlockSource source(final boolean kept) {
    final Location now = another.location();
    final long incarnation = now.incarnation() + 1;
    final Location location =
        new Location(
            now.bootId(),
            now.folderId(),
            incarnation,
            0,
            true,
            "",
            Location.socketName("1", incarnation),
            kept ? 7 : 0);
    final List<Block> blocks = TestBlocks.source("1", location, 1, 0, 1, 1, 3, MOST).blocks();
    return new BlockSource("1", location, "host", "address", blocks, kept);
  }

  @Test
  void isNotAskedForBlocksThatNobodyHasTakenOver() {
    final BlockSource source = source(false);
    try (Fetch fetch = reader.fetch(List.of(source), shared, TestNodes.quiet(), () -> false)) {
      assertThatThrownBy(fetch::next)
          .isInstanceOfSatisfying(
              BlockFetchException.class,
              e -> assertThat(e.message().code()).isEqualTo(ShuffleCode.SENDER_DEAD.label()))
          .hasCauseInstanceOf(OwnerGoneException.class)
          .hasMessageContaining("another one");
    }
    assertThat(staging.requests()).isZero();
  }

  @Test
  void itsKeeperIsAskedWithoutALookAtItsPort() {
    final BlockSource source = source(true);
    assertThat(TestNodes.fetchAndCheck(reader, shared, 1, MOST, source))
        .containsOnlyKeys(BlockPath.STAGED);
    assertThat(ended).containsExactly(source);
  }
}
