package io.zerohop.shuffle.transport.ucx;

import static org.assertj.core.api.Assertions.assertThat;

import io.zerohop.device.Leaks;
import io.zerohop.device.TestClock;
import io.zerohop.shuffle.DeviceOnlyGpu;
import io.zerohop.shuffle.GpuBlocks;
import io.zerohop.shuffle.ShuffleNode;
import io.zerohop.shuffle.TestNodes;
import io.zerohop.shuffle.block.BlockPath;
import io.zerohop.shuffle.block.BlockSource;
import io.zerohop.shuffle.fetch.Fetch;
import java.util.EnumMap;
import java.util.EnumSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** What cannot be got by UCX is sent by its owner, where both ways are there; nothing is staged. */
@Timeout(120)
class UcxThenSentTest {
  private static final int MAPS = 8;
  private static final int BATCHES = 2;
  private static final long POOL = 4 << 20;
  private static final long SEGMENT = 128 << 10;

  @TempDir private java.nio.file.Path base;
  private final Leaks leaks = new Leaks();
  private final FakeUcx ucx = new FakeUcx();
  private final LocalChannels channels = new LocalChannels();
  private final LocalCarriers carriers = new LocalCarriers();
  private final TestClock clock = TestClock.running();
  private final DeviceOnlyGpu ownersDevice = new DeviceOnlyGpu();
  private final DeviceOnlyGpu readersDevice = new DeviceOnlyGpu();
  private final Set<BlockPath> paths = EnumSet.of(BlockPath.LOCAL, BlockPath.UCX, BlockPath.SENT);
  private GpuUcx ownersUcx;
  private ShuffleNode owner;
  private ShuffleNode reader;
  private GpuBlocks made;
  private GpuBlocks readersBlocks;

  @BeforeEach
  void start() {
    owner = ShuffleNode.start(config("1", true), ownersDevice);
    reader = ShuffleNode.start(config("2", true), readersDevice);
    made = new GpuBlocks(ownersDevice);
    readersBlocks = new GpuBlocks(readersDevice);
  }

  private ShuffleNode.Setup config(final String executor, final boolean emulatedGets) {
    return TestNodes.config(base.resolve("s"), executor)
        .set("node.id", "node-" + executor)
        .set("paths", paths)
        .ucx(
            onStart -> {
              final GpuUcx engine =
                  new GpuUcx(ucx.engine(), new AtomicInteger(), new AtomicInteger());
              ownersUcx = ownersUcx == null ? engine : ownersUcx;
              return engine;
            },
            channels::open)
        .set("internal.ucx.emulatedGets", emulatedGets)
        .carrier(carriers.of(executor))
        .set("pool.size", POOL)
        .set("device.pool.size", POOL)
        .set("device.segment.size", SEGMENT)
        .clock(clock);
  }

  @AfterEach
  void noLeaks() {
    made.close();
    readersBlocks.close();
    for (final ShuffleNode node : List.of(reader, owner)) {
      node.unregisterShuffle(1);
      TestNodes.assertNothingHeld(node, clock);
      node.close();
    }
    ucx.close();
    leaks.check();
  }

  /** Reads everything as the GPU does, and checks it; blocks by path. */
  private Map<BlockPath, Integer> read(final ShuffleNode by, final BlockSource source) {
    final Map<BlockPath, Integer> counts = new EnumMap<>(BlockPath.class);
    readersBlocks.readAll(
        by, source, BATCHES, block -> counts.merge(block.path(), 1, Integer::sum));
    return counts;
  }

  private BlockSource write(final int maps) {
    return made.write(owner, "1", maps, BATCHES);
  }

  /** UCX's own thread is the fake's, which has none, and copies are the test's device's. */
  @Test
  void aNodeAtRestHasFewThreads() {
    final Set<Thread> before = Thread.getAllStackTraces().keySet();
    try (ShuffleNode node =
        ShuffleNode.start(
            config("3", true)
                .set(
                    "paths",
                    EnumSet.of(BlockPath.LOCAL, BlockPath.PEER, BlockPath.UCX, BlockPath.SENT))
                .neighbours(),
            new DeviceOnlyGpu())) {
      TestNodes.eventually(
          "it looks for neighbours",
          () ->
              Thread.getAllStackTraces().keySet().stream()
                  .filter(thread -> !before.contains(thread))
                  .anyMatch(thread -> thread.getName().equals("zerohop-neighbours")));
      assertThat(Thread.getAllStackTraces().keySet())
          .filteredOn(thread -> !before.contains(thread))
          .extracting(thread -> thread.getName().replaceAll("(exchange-).*", "$1"))
          .filteredOn(name -> name.startsWith("zerohop-") && !name.startsWith("zerohop-copy-"))
          .contains("zerohop-exchange-", "zerohop-housekeeping", "zerohop-neighbours")
          .isSubsetOf(
              "zerohop-exchange-",
              "zerohop-peer-watch",
              "zerohop-housekeeping",
              "zerohop-neighbours");
      assertThat(node.stats().peers()).isNotNull();
    }
  }

  @Test
  void whatCanBeGotIsGot() {
    assertThat(read(reader, write(MAPS))).containsOnlyKeys(BlockPath.UCX);
  }

  @Test
  void whatHasNoKeyIsSent() {
    read(reader, write(1));
    owner.unregisterShuffle(1);
    ownersUcx.refuses = true; // The segment that was read has its key already.
    assertThat(read(reader, write(MAPS)))
        .containsKey(BlockPath.SENT)
        .doesNotContainKey(BlockPath.STAGED);
  }

  @Test
  void whatLiesOnADeviceIsSentToTheHost() {
    final BlockSource source = write(MAPS);
    try (Fetch fetcher =
        reader.fetch(List.of(source), TestNodes.noStaging(), TestNodes.quiet(), () -> false)) {
      while (fetcher.next()) {
        assertThat(fetcher.block().path()).isEqualTo(BlockPath.SENT);
        assertThat(TestNodes.read(fetcher.block()))
            .isEqualTo(GpuBlocks.expected(fetcher.block().block(), BATCHES));
      }
    }
  }

  @Test
  void whereGetsAreEmulatedBlocksAreSent() {
    final BlockSource source = write(MAPS);
    try (ShuffleNode other = ShuffleNode.start(config("3", false), new DeviceOnlyGpu())) {
      assertThat(readOnHost(other, source)).containsOnlyKeys(BlockPath.SENT);
    }
  }

  private static Map<BlockPath, Integer> readOnHost(
      final ShuffleNode by, final BlockSource source) {
    final Map<BlockPath, Integer> counts = new EnumMap<>(BlockPath.class);
    try (Fetch fetcher =
        by.fetch(List.of(source), TestNodes.noStaging(), TestNodes.quiet(), () -> false)) {
      while (fetcher.next()) {
        counts.merge(fetcher.block().path(), 1, Integer::sum);
      }
    }
    return counts;
  }
}
