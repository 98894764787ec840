package io.zerohop.shuffle.fetch;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.zerohop.device.Leaks;
import io.zerohop.device.TestClock;
import io.zerohop.device.WaitException;
import io.zerohop.shuffle.ShuffleNode;
import io.zerohop.shuffle.TestBlocks;
import io.zerohop.shuffle.TestNodes;
import io.zerohop.shuffle.block.Block;
import io.zerohop.shuffle.block.BlockPath;
import io.zerohop.shuffle.block.BlockSource;
import io.zerohop.shuffle.transport.FakeStaging;
import io.zerohop.shuffle.transport.Transport;
import io.zerohop.shuffle.transport.Transport.FallbackTransport;
import java.io.IOException;
import java.io.InputStream;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.BooleanSupplier;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Staged blocks: receive buffers, order, failures and what comes too late. */
@SuppressWarnings("try") // A flight is there to be closed.
class StagedFetchTest {
  private static final int PARTITIONS = 50;
  private static final int MOST = 1000;
  private static final long WINDOW = 8_000;
  private static final long RECEIVE_BUFFERS = 20_000;

  @TempDir private java.nio.file.Path base;
  private final Leaks leaks = new Leaks();
  private final FakeStaging staging = new FakeStaging(1, MOST);
  private ShuffleNode node;

  @BeforeEach
  void start() {
    node = ShuffleNode.start(config());
  }

  private ShuffleNode.Setup config() {
    return TestNodes.config(base.resolve("s"), "1")
        .set("fetch.window.size", WINDOW)
        .set("fetch.receiveBuffers", RECEIVE_BUFFERS);
  }

  @AfterEach
  void noLeaks() {
    node.unregisterShuffle(1);
    TestNodes.assertNothingHeld(node);
    staging.assertAllReleased();
    node.close();
    leaks.check();
  }

  private static BlockSource elsewhere(final int firstMap, final int maps) {
    return TestBlocks.source("other", null, 1, firstMap, maps, 1, PARTITIONS, MOST);
  }

  private Fetch fetch(
      final FallbackTransport transport,
      final BooleanSupplier cancelled,
      final BlockSource... sources) {
    return node.fetch(List.of(sources), transport, TestNodes.quiet(), cancelled);
  }

  private void restart(final ShuffleNode.Setup config) {
    node.close();
    node = ShuffleNode.start(config);
  }

  @Test
  void aWindowNeverLandsMoreThanItsShare() {
    assertThat(TestNodes.fetchAndCheck(node, staging, 1, MOST, elsewhere(0, 8)))
        .containsOnlyKeys(BlockPath.STAGED);
    assertThat(staging.mostOpenBytes()).isBetween(1L, WINDOW);
    assertThat(staging.requests()).isGreaterThan(10);
    assertThat(node.fetches().moved(BlockPath.STAGED).bytes()).isPositive();
  }

  @Test
  void windowsAreLimitedByBlocksToo() {
    restart(
        config()
            .set("fetch.window.blocks", 3)
            .set("fetch.window.size", 1 << 20)
            .set("fetch.receiveBuffers", 1 << 20));
    final BlockSource source = elsewhere(0, 2);
    TestNodes.fetchAndCheck(
        node,
        (from, blocks, sink) -> {
          assertThat(blocks.size()).isLessThanOrEqualTo(3);
          staging.fetch(from, blocks, sink);
        },
        1,
        MOST,
        source);
    assertThat(staging.requests()).isEqualTo((source.blocks().size() + 2) / 3);
  }

  /** Its rows are not taken for none. */
  @Test
  void aBlockThatArrivesWithoutBytesFails() {
    final AtomicInteger released = new AtomicInteger();
    final Transport.Payload empty =
        new Transport.Payload() {
          @Override
          public long bytes() {
            return 0;
          }

          @Override
          public InputStream open(final BooleanSupplier ended) {
            return InputStream.nullInputStream();
          }

          @Override
          public void release() {
            released.incrementAndGet();
          }
        };
    final FallbackTransport transport =
        (source, blocks, sink) -> blocks.forEach(block -> sink.arrived(block, empty));
    final BlockSource source = elsewhere(0, 1);
    try (Fetch fetcher = fetch(transport, () -> false, source)) {
      assertThatThrownBy(fetcher::next)
          .isInstanceOf(BlockFetchException.class)
          .hasMessageContaining("without any bytes");
    }
    assertThat(released.get()).isPositive();
  }

  @Test
  void stagedBlocksTravelWhileOthersAreReadInPlace() {
    for (int map = 100; map < 104; map++) {
      TestBlocks.write(node, 1, map, 1, PARTITIONS, MOST);
    }
    final BlockSource here =
        TestBlocks.source("1", node.location(), 1, 100, 4, 1, PARTITIONS, MOST);
    final ExecutorService network = Executors.newFixedThreadPool(3);
    try {
      final FallbackTransport shuffled =
          (source, blocks, sink) -> {
            final List<Block> order = new ArrayList<>(blocks);
            Collections.shuffle(order);
            for (final Block block : order) {
              network.execute(() -> sink.arrived(block, staging.payload(block)));
            }
          };
      final Map<BlockPath, Integer> counts =
          TestNodes.fetchAndCheck(node, shuffled, 1, MOST, here, elsewhere(0, 20));
      assertThat(counts).containsOnlyKeys(BlockPath.LOCAL, BlockPath.STAGED);
      assertThat(counts.get(BlockPath.LOCAL)).isEqualTo(here.blocks().size());
    } finally {
      network.shutdown();
    }
    final List<BlockPath> order = new ArrayList<>();
    final List<Object[]> held = new ArrayList<>();
    final FallbackTransport late =
        (source, blocks, sink) -> blocks.forEach(b -> held.add(new Object[] {b, sink}));
    try (Fetch fetcher = fetch(late, () -> false, here, elsewhere(0, 1))) {
      assertThat(fetcher.next()).isTrue();
      order.add(fetcher.block().path());
      assertThat(held).as("asked for before the first block in place").isNotEmpty();
      final Block first = (Block) held.get(0)[0];
      ((Transport.Sink) held.get(0)[1]).arrived(first, staging.payload(first));
      assertThat(fetcher.next()).isTrue();
      order.add(fetcher.block().path());
    }
    assertThat(order).containsExactly(BlockPath.LOCAL, BlockPath.STAGED);
  }

  @Test
  void whatArrivesTooLateOrTwiceIsReleased() {
    final List<Block> asked = new ArrayList<>();
    final Transport.Sink[] sinks = new Transport.Sink[1];
    final FallbackTransport slow =
        (source, blocks, sink) -> {
          asked.addAll(blocks);
          sinks[0] = sink;
        };
    final AtomicBoolean cancelled = new AtomicBoolean();
    try (Fetch fetcher = fetch(slow, cancelled::get, elsewhere(0, 1))) {
      final Thread canceller =
          new Thread(
              () -> {
                TestNodes.eventually("asked", () -> sinks[0] != null);
                cancelled.set(true);
              });
      canceller.start();
      assertThatThrownBy(fetcher::next)
          .isInstanceOfSatisfying(
              WaitException.class,
              e -> assertThat(e.reason()).isEqualTo(WaitException.Reason.CANCELLED));
      sinks[0].arrived(asked.get(0), staging.payload(asked.get(0)));
      sinks[0].arrived(asked.get(0), staging.payload(asked.get(0)));
      sinks[0].failed(asked.get(0), new IOException("after it had arrived"));
    }
    assertThat(node.stats().receiveBuffers().bytes()).isZero();
    for (final Block block : asked) {
      sinks[0].arrived(block, staging.payload(block));
    }
    staging.assertAllReleased();
  }

  @Test
  void aFailedBlockIsNamed() {
    final BlockSource source = elsewhere(0, 1);
    final IOException cause = new IOException("connection reset");
    final FallbackTransport failing =
        (from, blocks, sink) -> {
          sink.arrived(blocks.get(0), staging.payload(blocks.get(0)));
          blocks.subList(1, blocks.size()).forEach(block -> sink.failed(block, cause));
        };
    try (Fetch fetcher = fetch(failing, () -> false, source)) {
      assertThat(fetcher.next()).isTrue();
      assertThatThrownBy(fetcher::next)
          .isInstanceOfSatisfying(
              BlockFetchException.class,
              e -> {
                assertThat(e.block()).isEqualTo(source.blocks().get(1));
                assertThat(e.source()).isSameAs(source);
                assertThat(e).hasCause(cause).hasMessageContaining("connection reset");
              });
    }
  }

  /** As for a look at an owner that says nothing, or for a connection. */
  @Test
  void aRequestThatWaitsIsCounted() {
    final TestClock clock = TestClock.standing();
    restart(config().clock(clock));
    final FallbackTransport slow =
        (source, blocks, sink) -> {
          clock.advance(Duration.ofSeconds(3));
          staging.fetch(source, blocks, sink);
        };
    try (Fetch fetcher = fetch(slow, () -> false, elsewhere(0, 1))) {
      assertThat(fetcher.next()).isTrue();
    }
    assertThat(node.fetches().waitedNanos()).isEqualTo(Duration.ofSeconds(3).toNanos());
  }

  @Test
  void aTransportThatThrowsIsAFailureOfItsBlocks() {
    final FallbackTransport broken =
        (source, blocks, sink) -> {
          throw new IllegalStateException("not connected");
        };
    try (Fetch fetcher = fetch(broken, () -> false, elsewhere(0, 1))) {
      assertThatThrownBy(fetcher::next)
          .isInstanceOf(BlockFetchException.class)
          .hasMessageContaining("not connected");
    }
  }

  @Test
  void aBlockThatNeverComesIsAFailureInTheEnd() {
    restart(config().stagedTimeout(Duration.ofMillis(50)));
    try (Fetch fetcher = fetch((source, blocks, sink) -> {}, () -> false, elsewhere(0, 1))) {
      assertThatThrownBy(fetcher::next)
          .isInstanceOf(BlockFetchException.class)
          .hasMessageContaining("did not arrive");
    }
  }

  /** All of it takes longer than the staged limit, and each block longer than the request limit. */
  @Test
  void aSlowTransferThatGetsOnIsNoFailure() {
    final TestClock clock = TestClock.standing();
    restart(
        config()
            .clock(clock)
            .set("request.timeout", Duration.ofMillis(1))
            .stagedTimeout(Duration.ofSeconds(1))
            .set("fetch.window.blocks", 1));
    final ExecutorService network = Executors.newSingleThreadExecutor();
    try {
      final FallbackTransport slow =
          (source, blocks, sink) ->
              network.execute(
                  () -> {
                    clock.advance(Duration.ofMillis(600));
                    staging.fetch(source, blocks, sink);
                  });
      assertThat(TestNodes.fetchAndCheck(node, slow, 1, MOST, elsewhere(0, 1)))
          .containsOnlyKeys(BlockPath.STAGED);
    } finally {
      network.shutdown();
    }
  }

  @Test
  void aBlockLargerThanAllBudgetsTravelsAlone() {
    restart(config().set("fetch.window.size", 10).set("fetch.receiveBuffers", 5));
    final BlockSource source = elsewhere(0, 1);
    assertThat(TestNodes.fetchAndCheck(node, staging, 1, MOST, source))
        .containsOnlyKeys(BlockPath.STAGED);
    assertThat(staging.requests()).isEqualTo(source.blocks().size());
    assertThat(staging.mostOpenBytes()).isLessThanOrEqualTo(MOST);
  }

  /** One task reads two shuffles at once, and its first reader holds all receive buffers. */
  @Test
  void fetchersThatWaitForOneAnothersMemoryGetOn() {
    final TestClock clock = TestClock.running();
    restart(config().set("fetch.receiveBuffers", 1).clock(clock));
    try (Fetch one = fetch(staging, () -> false, elsewhere(0, 1));
        Fetch two = fetch(staging, () -> false, elsewhere(1, 1))) {
      assertThat(one.next()).isTrue();
      try (TestClock.Flight flight = clock.fly()) {
        assertThat(two.next()).isTrue();
      }
      assertThat(node.stats().receiveBuffers().bytes()).isBetween(2L, 2L * MOST);
    }
  }

  @Test
  void aReservationThatIsGivenBackIsTakenByTheOneWhoWaits() throws Exception {
    restart(config().set("fetch.receiveBuffers", 1));
    final Fetch one = fetch(staging, () -> false, elsewhere(0, 1));
    assertThat(one.next()).isTrue();
    final Thread closer =
        new Thread(
            () -> {
              try {
                TimeUnit.MILLISECONDS.sleep(30);
              } catch (final InterruptedException e) {
                Thread.currentThread().interrupt();
              }
              one.close();
            });
    closer.start();
    TestNodes.fetchAndCheck(node, staging, 1, MOST, elsewhere(1, 1));
    closer.join();
  }
}
