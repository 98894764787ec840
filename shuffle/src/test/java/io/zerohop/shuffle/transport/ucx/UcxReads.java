package io.zerohop.shuffle.transport.ucx;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.catchThrowable;

import io.zerohop.device.Leaks;
import io.zerohop.device.TestClock;
import io.zerohop.device.posix.Clock;
import io.zerohop.shuffle.DeviceOnlyGpu;
import io.zerohop.shuffle.ShuffleNode;
import io.zerohop.shuffle.TestBlocks;
import io.zerohop.shuffle.TestNodes;
import io.zerohop.shuffle.block.Block;
import io.zerohop.shuffle.block.BlockPath;
import io.zerohop.shuffle.block.BlockSource;
import io.zerohop.shuffle.catalog.MapOutputLease;
import io.zerohop.shuffle.fetch.BlockFetchException;
import io.zerohop.shuffle.fetch.Fetch;
import io.zerohop.shuffle.transport.FakeStaging;
import io.zerohop.shuffle.transport.Transport.OwnerGoneException;
import io.zerohop.shuffle.transport.remote.Wire;
import io.zerohop.shuffle.transport.ucx.engine.NetworkDevices.RdmaDevices;
import io.zerohop.shuffle.transport.ucx.engine.UcxEngine;
import io.zerohop.shuffle.transport.ucx.engine.UcxException.OldLibucxException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.agrona.concurrent.UnsafeBuffer;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/**
 * Two executors that take each other to be on other nodes: what goes wrong between them. That
 * blocks come is in {@link UcxPathContract}.
 */
@Timeout(120)
abstract class UcxReads {
  private static final int SHUFFLE = 1;
  private static final int PARTITIONS = 40;
  private static final int MOST = 3_000;
  private static final int BATCHES = 2;

  @TempDir private java.nio.file.Path base;
  private final Leaks leaks = new Leaks();
  private final LocalChannels channels = new LocalChannels();
  private final TestClock clock = TestClock.running();
  private final FakeStaging staging = new FakeStaging(BATCHES, MOST);
  private ShuffleNode owner;
  private ShuffleNode reader;

  @BeforeEach
  void start() {
    engine(clock).close(); // Skips where there is none.
    owner = ShuffleNode.start(config("1"));
    reader = ShuffleNode.start(config("2"));
  }

  private ShuffleNode.Setup config(final String executor) {
    return TestNodes.config(base.resolve("s"), executor)
        .set("node.id", "node-" + executor)
        .ucx(onStart -> engine(clock), channels::open)
        .set("internal.ucx.emulatedGets", true)
        .set("request.timeout", Duration.ofSeconds(4))
        .set("connect.timeout", Duration.ofSeconds(2))
        .clock(clock);
  }

  /** UCX of a node. */
  abstract UcxEngine engine(Clock by);

  /** All nodes have ended. */
  void end() {}

  @AfterEach
  void noLeaks() {
    if (owner == null) {
      return;
    }
    for (final ShuffleNode node : new ShuffleNode[] {reader, owner}) {
      node.unregisterShuffle(SHUFFLE);
      TestNodes.assertNothingHeld(node, clock);
    }
    staging.assertAllReleased();
    reader.close();
    owner.close();
    assertThat(channels.openLinks()).isZero();
    end();
    leaks.check();
  }

  private BlockSource write(final int maps) {
    for (int map = 0; map < maps; map++) {
      TestBlocks.write(owner, SHUFFLE, map, BATCHES, PARTITIONS, MOST);
    }
    return TestBlocks.source("1", owner.location(), SHUFFLE, 0, maps, BATCHES, PARTITIONS, MOST);
  }

  private Map<BlockPath, Integer> read(final BlockSource source) {
    return TestNodes.fetchAndCheck(reader, staging, BATCHES, MOST, source);
  }

  @Test
  void blocksInGpuMemoryCannotBeGotToTheHost() {
    try (ShuffleNode gpu = ShuffleNode.start(config("3"), new DeviceOnlyGpu())) {
      TestBlocks.write(gpu, SHUFFLE, 0, BATCHES, PARTITIONS, MOST);
      final BlockSource source =
          TestBlocks.source("3", gpu.location(), SHUFFLE, 0, 1, BATCHES, PARTITIONS, MOST);
      assertThat(read(source)).containsOnlyKeys(BlockPath.STAGED);
      final BlockSource back = write(2);
      assertThat(TestNodes.fetchAndCheck(gpu, staging, BATCHES, MOST, back))
          .containsOnlyKeys(BlockPath.UCX);
      gpu.unregisterShuffle(SHUFFLE);
      TestNodes.assertNothingHeld(gpu);
    }
  }

  @Test
  void damagedBytesAreFoundOut() {
    final BlockSource source = write(1);
    final int partition = source.blocks().get(0).partition();
    try (MapOutputLease lease = owner.lease(SHUFFLE, 0)) {
      lease.forEachExtent(
          partition,
          (address, length) -> {
            final UnsafeBuffer bytes = new UnsafeBuffer(address, length);
            bytes.putByte(length - 1, (byte) ~bytes.getByte(length - 1));
          });
    }
    assertThatThrownBy(() -> read(source))
        .isInstanceOf(BlockFetchException.class)
        .hasMessageContaining("damaged");
  }

  @Test
  void whatTheOwnerDoesNotHoldIsStaged() {
    final BlockSource source = write(4);
    owner.remove(SHUFFLE, 2);
    final Map<BlockPath, Integer> counts = read(source);
    assertThat(counts).containsOnlyKeys(BlockPath.UCX, BlockPath.STAGED);
    assertThat(counts.get(BlockPath.STAGED))
        .isEqualTo((int) source.blocks().stream().filter(b -> b.mapId() == 2).count());
  }

  @Test
  void aLostConnectionIsMadeAgain() {
    final BlockSource source = write(8);
    final AtomicInteger opens = new AtomicInteger();
    channels.onQuestion =
        question -> {
          if (question.get() == Wire.OPEN && opens.incrementAndGet() == 1) {
            channels.breakLinks();
          }
        };
    assertThat(read(source)).containsOnlyKeys(BlockPath.UCX);
    assertThat(opens.get()).isGreaterThan(1);
  }

  @Test
  void aLeaseThatEndedWhileBlocksWereMovedIsNoticed() {
    final BlockSource source = write(8);
    final AtomicInteger dropped = new AtomicInteger();
    channels.onQuestion =
        question -> {
          final byte kind = question.get();
          if (kind == Wire.CLOSE && dropped.incrementAndGet() == 1) {
            channels.breakLinks();
          }
        };
    assertThat(read(source)).containsOnlyKeys(BlockPath.UCX);
    assertThat(dropped.get()).isGreaterThan(1);
  }

  @Test
  void whatTheOwnerDidNotHoldToTheEndIsReadAgain() {
    final BlockSource source = write(4);
    final AtomicInteger opens = new AtomicInteger();
    channels.onQuestion = question -> opens.addAndGet(question.get() == Wire.OPEN ? 1 : 0);
    read(source);
    final int undisturbed = opens.getAndSet(0);
    channels.askedTwice = Wire.CLOSE; // The second time there is no such lease.
    assertThat(read(source)).containsOnlyKeys(BlockPath.UCX);
    assertThat(channels.askedTwice).isZero();
    assertThat(opens.get()).isGreaterThan(undisturbed);
  }

  @Test
  void blocksThatFailedTogetherAreAskedForTogether() {
    final BlockSource source = write(8);
    final AtomicInteger opens = new AtomicInteger();
    channels.onQuestion =
        question -> {
          if (question.get() == Wire.OPEN && opens.incrementAndGet() == 1) {
            throw new IllegalStateException("not now");
          }
        };
    assertThat(read(source)).containsOnlyKeys(BlockPath.UCX);
    assertThat(opens.get()).isLessThan(10);
  }

  @Test
  void aReaderThatIsInterruptedDoesNotMakeTheOwnerDeadForOthers() throws Exception {
    final BlockSource source = write(4);
    assertThat(read(source)).containsOnlyKeys(BlockPath.UCX);
    channels.breakLinks();
    channels.onQuestion =
        question -> {
          if (question.get() == Wire.HELLO) {
            channels.silent = true;
            Thread.currentThread().interrupt();
          }
        };
    final List<Throwable> failure = new ArrayList<>();
    final Thread killed = new Thread(() -> failure.add(catchThrowable(() -> read(source))));
    killed.start();
    killed.join();
    channels.onQuestion = question -> {};
    channels.silent = false;
    assertThat(failure.get(0)).isNotInstanceOf(BlockFetchException.class);
    assertThat(read(source).values().stream().mapToInt(count -> count).sum())
        .isEqualTo(source.blocks().size());
  }

  @Test
  void anOwnerThatRefusesIsNotDead() {
    final BlockSource source = write(4);
    assertThat(read(source)).containsOnlyKeys(BlockPath.UCX);
    channels.breakLinks();
    channels.onQuestion =
        question -> {
          if (question.get() == Wire.HELLO) {
            throw new IllegalStateException("no memory just now");
          }
        };
    assertThat(read(source).values().stream().mapToInt(count -> count).sum())
        .isEqualTo(source.blocks().size());
  }

  @Test
  void aNodeWithoutAPortGoesOnWithoutUcx() {
    final ShuffleNode.Setup noPort =
        config("3")
            .ucx(
                onStart -> engine(clock),
                service -> {
                  throw new IllegalStateException("Cannot listen for control connections");
                });
    try (ShuffleNode node = ShuffleNode.start(noPort)) {
      assertThat(node.location().port()).isZero();
    }
  }

  @Test
  void aNodeWhoseLibucxIsTooOldGoesOnWithoutUcx() {
    final ShuffleNode.Setup old =
        config("3")
            .ucx(
                onStart -> {
                  throw new OldLibucxException("libucx 1.13.1 is older than 1.19");
                },
                channels::open);
    try (ShuffleNode node = ShuffleNode.start(old)) {
      assertThat(node.location().port()).isZero();
    }
  }

  @Test
  void whereNothingCouldBeOneSidedNoPortIsOpened() {
    try (ShuffleNode node =
        ShuffleNode.start(config("3").set("internal.ucx.emulatedGets", false))) {
      assertThat(node.location().port() > 0).isEqualTo(RdmaDevices.any());
    }
  }

  @Test
  void aDeadOwnerFailsTheFetch() {
    final BlockSource source = write(4);
    assertThat(read(source)).containsOnlyKeys(BlockPath.UCX);
    owner.unregisterShuffle(SHUFFLE);
    owner.close();
    assertThatThrownBy(() -> read(source))
        .isInstanceOf(BlockFetchException.class)
        .hasMessageContaining("does not answer");
  }

  @Test
  void anOwnerThatWasNeverMetAndAnswersNowhereIsDead() {
    final BlockSource source = write(4);
    owner.unregisterShuffle(SHUFFLE);
    owner.close();
    staging.desert();
    assertThatThrownBy(() -> read(source))
        .isInstanceOf(BlockFetchException.class)
        .hasCauseInstanceOf(OwnerGoneException.class)
        .hasMessageContaining("does not answer");
  }

  @Test
  void whoResetsConnectionsIsDeadIfNobodyAnswersElsewhere() {
    final BlockSource source = write(4);
    channels.resets = true;
    assertThat(read(source)).containsOnlyKeys(BlockPath.STAGED);
    final FakeStaging deserted = new FakeStaging(BATCHES, MOST);
    deserted.desert();
    try (ShuffleNode other = ShuffleNode.start(config("3"))) {
      assertThatThrownBy(() -> TestNodes.fetchAndCheck(other, deserted, BATCHES, MOST, source))
          .isInstanceOf(BlockFetchException.class)
          .hasCauseInstanceOf(OwnerGoneException.class);
    }
    channels.resets = false;
  }

  @Test
  void anOwnerThatFallsSilentIsStaged() {
    final BlockSource source = write(4);
    fallSilentWhenOpened();
    assertThat(read(source)).containsOnlyKeys(BlockPath.STAGED);
    channels.silent = false;
  }

  @Test
  void anOwnerThatFallsSilentAndAnswersNowhereIsDead() {
    final BlockSource source = write(4);
    fallSilentWhenOpened();
    staging.desert();
    assertThatThrownBy(() -> read(source))
        .isInstanceOf(BlockFetchException.class)
        .hasCauseInstanceOf(OwnerGoneException.class);
    channels.silent = false;
  }

  private void fallSilentWhenOpened() {
    channels.onQuestion =
        question -> {
          if (question.get() == Wire.OPEN) {
            channels.silent = true;
          }
        };
  }

  @Test
  void anOwnerThatNeverAnsweredIsStaged() {
    final BlockSource source = write(3);
    channels.silent = true;
    assertThat(read(source)).containsOnlyKeys(BlockPath.STAGED);
    channels.silent = false;
  }

  @Test
  void withoutUcxAtEitherEndBlocksAreStaged() {
    final BlockSource source = write(3);
    try (ShuffleNode bare = ShuffleNode.start(config("3").ucx(null, null))) {
      assertThat(TestNodes.fetchAndCheck(bare, staging, BATCHES, MOST, source))
          .containsOnlyKeys(BlockPath.STAGED);
      TestBlocks.write(bare, SHUFFLE, 9, BATCHES, PARTITIONS, MOST);
      final BlockSource other =
          TestBlocks.source("3", bare.location(), SHUFFLE, 9, 1, BATCHES, PARTITIONS, MOST);
      assertThat(read(other)).containsOnlyKeys(BlockPath.STAGED);
      bare.unregisterShuffle(SHUFFLE);
    }
  }

  @Test
  void blocksMayBeUnregisteredWhileTheyAreRead() {
    final BlockSource source = write(6);
    final List<Block> left = new ArrayList<>(source.blocks());
    try (Fetch fetcher = reader.fetch(List.of(source), staging, TestNodes.quiet(), () -> false)) {
      while (fetcher.next()) {
        owner.unregisterShuffle(SHUFFLE);
        final Block block = fetcher.block().block();
        assertThat(TestNodes.read(fetcher.block()))
            .isEqualTo(TestBlocks.block(SHUFFLE, block.mapId(), BATCHES, block.partition(), MOST));
        left.remove(block);
      }
    }
    assertThat(left).isEmpty();
  }

  @Test
  void manyReadersShareAConnection() throws Exception {
    final BlockSource source = write(10);
    final ExecutorService threads = Executors.newFixedThreadPool(4);
    try {
      final List<Future<Map<BlockPath, Integer>>> answers = new ArrayList<>();
      for (int i = 0; i < 12; i++) {
        answers.add(threads.submit(() -> read(source)));
      }
      for (final Future<Map<BlockPath, Integer>> answer : answers) {
        assertThat(answer.get(60, TimeUnit.SECONDS)).containsOnlyKeys(BlockPath.UCX);
      }
    } finally {
      threads.shutdownNow();
    }
    assertThat(channels.openLinks()).isEqualTo(1);
  }
}
