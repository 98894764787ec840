package io.zerohop.shuffle.transport.ucx;

import static org.assertj.core.api.Assertions.assertThat;

import io.zerohop.device.Leaks;
import io.zerohop.device.TestClock;
import io.zerohop.shuffle.DeviceOnlyGpu;
import io.zerohop.shuffle.GpuBlocks;
import io.zerohop.shuffle.NodeConfig;
import io.zerohop.shuffle.ShuffleNode;
import io.zerohop.shuffle.TestNodes;
import io.zerohop.shuffle.block.BlockSource;
import io.zerohop.shuffle.block.Path;
import io.zerohop.shuffle.fetch.BlockFetcher;
import io.zerohop.shuffle.transport.remote.wire.Wire;
import io.zerohop.shuffle.transport.ucx.engine.UcxEngine;
import io.zerohop.shuffle.transport.ucx.engine.UcxLoader;
import io.zerohop.shuffle.transport.ucx.engine.UcxMode;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** Blocks go from the memory of one node's device into that of another's. */
@Timeout(120)
class UcxDirectTest {
  private static final int MAPS = 8;
  private static final int BATCHES = 2;

  private static final long POOL = 4 << 20;
  private static final long SEGMENT = 128 << 10;

  @TempDir private java.nio.file.Path base;
  private final Leaks leaks = new Leaks();
  private final LocalChannels channels = new LocalChannels();
  private final TestClock clock = TestClock.running();
  private final DeviceOnlyGpu ownersDevice = new DeviceOnlyGpu();
  private final DeviceOnlyGpu readersDevice = new DeviceOnlyGpu();
  private final AtomicInteger gets = new AtomicInteger();
  private final AtomicInteger emulated = new AtomicInteger();
  private final List<GpuUcx> engines = new ArrayList<>();
  private boolean reachable = true;
  private boolean linked;
  private ShuffleNode owner;
  private ShuffleNode reader;
  private GpuBlocks made;
  private GpuBlocks readersBlocks;

  private void start(final UcxMode mode, final long readersPool) {
    TestUcx.start().close(); // Skips where there is no libucx.
    owner = ShuffleNode.start(config("1", mode, POOL), ownersDevice);
    reader = ShuffleNode.start(config("2", mode, readersPool), readersDevice);
    made = new GpuBlocks(ownersDevice);
    readersBlocks = new GpuBlocks(readersDevice);
  }

  private NodeConfig config(final String executor, final UcxMode mode, final long pool) {
    return TestNodes.config(base.resolve("s"), executor)
        .nodeId("node-" + executor)
        .ucx(this::engine)
        .ucxMode(mode)
        .poolBytes(POOL)
        .devicePoolBytes(pool)
        .deviceSegmentBytes(Math.min(pool, SEGMENT))
        .controlChannels(channels::open)
        .clock(clock)
        .build();
  }

  private UcxEngine engine(final boolean oneSided, final Runnable onStart) {
    final UcxEngine near = UcxLoader.start(null, null, oneSided, onStart, clock);
    if (!reachable) {
      return near;
    }
    final GpuUcx far = new GpuUcx(near, gets, emulated);
    far.linked = linked;
    engines.add(far);
    return far;
  }

  @AfterEach
  void noLeaks() {
    if (readersBlocks == null) {
      return;
    }
    made.close();
    readersBlocks.close();
    for (final ShuffleNode node : List.of(reader, owner)) {
      node.unregisterShuffle(1);
      TestNodes.assertNothingHeld(node, clock);
      node.close();
    }
    leaks.check();
  }

  /** Reads everything, as the GPU does; returns how many payloads were on the reader's device. */
  private int read(final BlockSource source) {
    return readersBlocks.readAll(
        reader, source, BATCHES, block -> assertThat(block.path()).isEqualTo(Path.UCX));
  }

  @Test
  void payloadsLandWhereTheyAreReadAndHeadersOnTheHost() {
    start(UcxMode.GET, POOL);
    final BlockSource source = made.write(owner, "1", MAPS, BATCHES);
    assertThat(read(source)).isGreaterThan(source.blocks().size());
    // What one map task packed at once comes by one get, within a window.
    assertThat(gets.get()).isBetween(1, 2 * MAPS * BATCHES);
  }

  @Test
  void headersComeByMessageWhereGetsFromTheHostAreSlow() {
    linked = true;
    start(UcxMode.AUTO, POOL);
    final BlockSource source = made.write(owner, "1", MAPS, BATCHES);
    final AtomicInteger sends = new AtomicInteger();
    channels.onQuestion = question -> sends.addAndGet(question.get() == Wire.SEND ? 1 : 0);
    assertThat(read(source)).isGreaterThan(source.blocks().size());
    assertThat(sends).hasPositiveValue();
    assertThat(gets).hasPositiveValue();
  }

  @Test
  void emulatedGetsBetweenDevicesAreNotTaken() {
    start(UcxMode.AUTO, POOL);
    final BlockSource source = made.write(owner, "1", MAPS, BATCHES);
    assertThat(read(source)).isZero();
    assertThat(gets).hasValue(0);
  }

  @Test
  void theHostReadsTheSameBlocks() throws Exception {
    start(UcxMode.GET, POOL);
    final BlockSource source = made.write(owner, "1", MAPS, BATCHES);
    try (BlockFetcher fetcher =
        reader.fetch(List.of(source), TestNodes.noStaging(), TestNodes.quiet(), () -> false)) {
      while (fetcher.next()) {
        assertThat(TestNodes.read(fetcher.block()))
            .isEqualTo(GpuBlocks.expected(fetcher.block().block(), BATCHES));
      }
    }
    assertThat(gets).hasValue(0);
  }

  @Test
  void withoutRoomOnTheReadersDeviceEverythingLandsOnTheHost() {
    start(UcxMode.GET, 4 << 10);
    final BlockSource source = made.write(owner, "1", MAPS, BATCHES);
    assertThat(read(source)).isZero();
  }

  @Test
  void aSegmentThatCannotBeRegisteredComesOverTheHost() {
    start(UcxMode.GET, POOL);
    assertThat(read(made.write(owner, "1", 1, BATCHES))).isPositive();
    owner.unregisterShuffle(1);
    engines.get(0).refuses = true; // The segment that was read has its key already.
    final BlockSource source = made.write(owner, "1", MAPS, BATCHES);
    assertThat(read(source)).isLessThan(source.blocks().size());
    final int refusals = engines.get(0).refusals.get();
    assertThat(refusals).isPositive();
    channels.breakLinks(); // The reader asks for its key again.
    read(source);
    assertThat(engines.get(0).refusals).as("it is not tried again").hasValue(refusals);
  }

  @Test
  void memoryThatCannotBeRegisteredForATestKeepsNobodyFromTheRest() {
    start(UcxMode.GET, POOL);
    engines.get(1).refuses = true;
    assertThat(read(made.write(owner, "1", MAPS, BATCHES))).isZero();
    assertThat(gets).hasValue(0);
  }

  @Test
  void testReadsBetweenDevicesThatFailKeepNobodyFromTheRest() {
    start(UcxMode.GET, POOL);
    engines.get(1).broken = true;
    final BlockSource source = made.write(owner, "1", MAPS, BATCHES);
    assertThat(read(source)).isZero();
    engines.get(1).broken = false;
    channels.breakLinks();
    assertThat(read(source)).as("it is not tried again").isZero();
  }

  @Test
  void oneOwnerWhoseTestReadFailedDoesNotStandForOthers() {
    start(UcxMode.GET, POOL);
    engines.get(1).broken = true;
    assertThat(read(made.write(owner, "1", MAPS, BATCHES))).isZero();
    engines.get(1).broken = false;
    assertThat(readFromAnother("3")).isPositive();
  }

  /** Payloads on the reader's device of what one more owner has written, which ends. */
  private int readFromAnother(final String executor) {
    final DeviceOnlyGpu device = new DeviceOnlyGpu();
    try (ShuffleNode other = ShuffleNode.start(config(executor, UcxMode.GET, POOL), device);
        GpuBlocks others = new GpuBlocks(device)) {
      final int onDevice = read(others.write(other, executor, MAPS, BATCHES));
      other.unregisterShuffle(1);
      TestNodes.assertNothingHeld(other);
      return onDevice;
    }
  }

  @Test
  void whereNoOwnersGpuCanBeReadNoMoreAreTried() {
    start(UcxMode.GET, POOL);
    engines.get(1).broken = true;
    read(made.write(owner, "1", MAPS, BATCHES));
    assertThat(readFromAnother("3")).isZero();
    assertThat(readFromAnother("4")).isZero();
    engines.get(1).broken = false;
    assertThat(readFromAnother("5")).isZero();
  }

  @Test
  void withMessagesOnlyNothingIsGot() {
    start(UcxMode.MESSAGE, POOL);
    final BlockSource source = made.write(owner, "1", MAPS, BATCHES);
    assertThat(read(source)).isZero();
    assertThat(gets.get()).isZero();
  }

  @Test
  void withoutReachEverythingLandsOnTheHost() {
    reachable = false;
    start(UcxMode.GET, POOL);
    final BlockSource source = made.write(owner, "1", MAPS, BATCHES);
    assertThat(read(source)).isZero();
    assertThat(gets).hasValue(0);
  }

  @Test
  void aLeaseThatWasLostOnTheWayIsTakenAgain() {
    start(UcxMode.GET, POOL);
    final BlockSource source = made.write(owner, "1", MAPS, BATCHES);
    final AtomicInteger closes = new AtomicInteger();
    channels.onQuestion =
        question -> {
          if (question.get() == Wire.CLOSE && closes.incrementAndGet() == 1) {
            channels.breakLinks();
          }
        };
    assertThat(read(source)).isGreaterThan(source.blocks().size());
    assertThat(closes.get()).isGreaterThan(1);
  }
}
