package io.zerohop.shuffle.transport.contract;

import static org.assertj.core.api.Assertions.assertThat;

import io.zerohop.device.Leaks;
import io.zerohop.device.posix.Clock;
import io.zerohop.shuffle.ShuffleNode;
import io.zerohop.shuffle.TestBlocks;
import io.zerohop.shuffle.TestNodes;
import io.zerohop.shuffle.block.Block;
import io.zerohop.shuffle.block.BlockPath;
import io.zerohop.shuffle.block.BlockSource;
import io.zerohop.shuffle.fetch.BlockFetchException;
import io.zerohop.shuffle.fetch.Fetch;
import io.zerohop.shuffle.fetch.FetchedBlock;
import io.zerohop.shuffle.transport.SharedTransfers;
import io.zerohop.shuffle.transport.Transport.FallbackTransport;
import java.io.IOException;
import java.io.InputStream;
import java.time.Duration;
import java.util.ArrayList;
import java.util.EnumSet;
import java.util.List;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/**
 * Whatever a transport does, a reader gets each block once with its own bytes, or an error; it
 * waits no longer than its limit, and holds nothing afterwards.
 */
@Timeout(180)
class TransportFaultsTest {
  private static final int SHUFFLE = 1;
  private static final int MAPS = 4;
  private static final int PARTITIONS = 15;
  private static final int MOST = 1_000;
  private static final int SEEDS = 150;

  /** Of some hundred blocks and requests: none, one or two, and many. */
  private static final double[] RATES = {0, 0.015, 0.1};

  @TempDir private java.nio.file.Path folder;
  private final Leaks leaks = new Leaks();
  private final ServedBlocks served = new ServedBlocks();
  private ShuffleNode node;
  private BlockSource source;
  private int complete;
  private int failed;
  private int faults;

  @BeforeEach
  void start() {
    node =
        ShuffleNode.start(
            TestNodes.config(folder.resolve("s"), "owner")
                .set("paths", EnumSet.of(BlockPath.STAGED))
                .set("fetch.window.blocks", 9)
                .stagedTimeout(Duration.ofMillis(150)));
    served.serve("owner", node);
    for (int map = 0; map < MAPS; map++) {
      TestBlocks.write(node, SHUFFLE, map, 1, PARTITIONS, MOST);
    }
    source = TestBlocks.source("owner", node.location(), SHUFFLE, 0, MAPS, 1, PARTITIONS, MOST);
  }

  @AfterEach
  void nothingIsHeld() {
    node.unregisterShuffle(SHUFFLE);
    TestNodes.assertNothingHeld(node);
    served.close();
    node.close();
    leaks.check();
  }

  @Test
  void readersGetTheirBlocksOrAnError() {
    for (int seed = 0; seed < SEEDS; seed++) {
      final FaultyTransport faulty = new FaultyTransport(served, seed, RATES[seed % RATES.length]);
      try (faulty) {
        read(seed, faulty);
      }
      count(faulty);
    }
    assertEnoughHappened();
  }

  @Test
  void soDoThoseThatShareTransfers() {
    for (int seed = 0; seed < SEEDS; seed++) {
      final FaultyTransport faulty = new FaultyTransport(served, seed, RATES[seed % RATES.length]);
      try (faulty;
          SharedTransfers shared =
              new SharedTransfers(
                  faulty, from -> true, 2, Duration.ofSeconds(30), Clock.system())) {
        read(seed, shared);
      }
      count(faulty);
    }
    assertEnoughHappened();
  }

  private void count(final FaultyTransport faulty) {
    faults += faulty.faults();
    served.assertAllReleased();
    assertThat(node.stats().receiveBuffers().bytes()).isZero();
  }

  /** So that this test says something about both outcomes. */
  private void assertEnoughHappened() {
    assertThat(complete).isGreaterThanOrEqualTo(SEEDS / RATES.length);
    assertThat(failed).isGreaterThan(SEEDS / 4);
    assertThat(faults).isGreaterThan(failed);
  }

  private void read(final int seed, final FallbackTransport transport) {
    final List<Block> left = new ArrayList<>(source.blocks());
    try (Fetch fetcher = node.fetch(List.of(source), transport, TestNodes.quiet(), () -> false)) {
      while (fetcher.next()) {
        final FetchedBlock fetched = fetcher.block();
        final Block block = fetched.block();
        assertThat(left.remove(block)).as("seed %s: %s is wanted, once", seed, block).isTrue();
        try (InputStream in = fetched.stream()) {
          assertThat(in.readAllBytes())
              .as("seed %s: %s", seed, block)
              .isEqualTo(TestBlocks.block(SHUFFLE, block.mapId(), 1, block.partition(), MOST));
        }
      }
      assertThat(left).as("seed %s", seed).isEmpty();
      complete++;
    } catch (final BlockFetchException | IOException e) {
      failed++;
    }
  }
}
