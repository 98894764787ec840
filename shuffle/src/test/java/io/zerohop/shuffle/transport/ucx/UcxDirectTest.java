package io.zerohop.shuffle.transport.ucx;

import static org.assertj.core.api.Assertions.assertThat;

import io.zerohop.device.Device.AdapterWrites;
import io.zerohop.device.Leaks;
import io.zerohop.device.TestClock;
import io.zerohop.shuffle.DeviceOnlyGpu;
import io.zerohop.shuffle.GpuBlocks;
import io.zerohop.shuffle.ShuffleNode;
import io.zerohop.shuffle.TestNodes;
import io.zerohop.shuffle.block.BlockPath;
import io.zerohop.shuffle.block.BlockSource;
import io.zerohop.shuffle.fetch.Fetch;
import io.zerohop.shuffle.transport.FakeStaging;
import io.zerohop.shuffle.transport.remote.Wire;
import io.zerohop.shuffle.transport.ucx.engine.UcxEngine;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/**
 * Blocks go from the memory of one node's device into that of another's, or are not got. What UCX
 * does is copied within this process.
 */
@Timeout(120)
class UcxDirectTest {
  private static final int MAPS = 8;
  private static final int BATCHES = 2;

  private static final long POOL = 4 << 20;
  private static final long SEGMENT = 128 << 10;

  @TempDir private java.nio.file.Path base;
  private final Leaks leaks = new Leaks();
  private final FakeUcx ucx = new FakeUcx();
  private final LocalChannels channels = new LocalChannels();
  private final TestClock clock = TestClock.running();
  private final DeviceOnlyGpu ownersDevice = new DeviceOnlyGpu();
  private final DeviceOnlyGpu readersDevice = new DeviceOnlyGpu();
  private final AtomicInteger gets = new AtomicInteger();
  private final AtomicInteger emulated = new AtomicInteger();
  private final List<GpuUcx> engines = new ArrayList<>();
  private final FakeStaging staging = new FakeStaging(block -> GpuBlocks.expected(block, BATCHES));
  private boolean reachable = true;
  private boolean linked;
  private ShuffleNode owner;
  private ShuffleNode reader;
  private GpuBlocks made;
  private GpuBlocks readersBlocks;

  private void start() {
    start(true, POOL);
  }

  private void start(final boolean emulatedGets, final long readersPool) {
    owner = ShuffleNode.start(config("1", emulatedGets, POOL), ownersDevice);
    reader = ShuffleNode.start(config("2", emulatedGets, readersPool), readersDevice);
    made = new GpuBlocks(ownersDevice);
    readersBlocks = new GpuBlocks(readersDevice);
  }

  private ShuffleNode.Setup config(
      final String executor, final boolean emulatedGets, final long pool) {
    return TestNodes.config(base.resolve("s"), executor)
        .set("node.id", "node-" + executor)
        .ucx(onStart -> engine(), channels::open)
        .set("internal.ucx.emulatedGets", emulatedGets)
        .set("pool.size", POOL)
        .set("device.pool.size", pool)
        .set("device.segment.size", Math.min(pool, SEGMENT))
        .clock(clock);
  }

  private UcxEngine engine() {
    final UcxEngine near = ucx.engine();
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
    made.close();
    readersBlocks.close();
    for (final ShuffleNode node : List.of(reader, owner)) {
      node.unregisterShuffle(1);
      TestNodes.assertNothingHeld(node, clock);
      node.close();
    }
    staging.assertAllReleased();
    ucx.close();
    leaks.check();
  }

  /** Reads everything, as the GPU does; returns how many payloads were on the reader's device. */
  private int read(final BlockSource source) {
    return readersBlocks.readAll(
        reader, source, BATCHES, block -> assertThat(block.path()).isEqualTo(BlockPath.UCX));
  }

  /** The same where nothing can be got for the GPU: all of it has to go another way. */
  private void readStaged(final BlockSource source) {
    assertThat(
            readersBlocks.readAll(
                reader,
                source,
                BATCHES,
                staging,
                block -> assertThat(block.path()).isEqualTo(BlockPath.STAGED)))
        .isZero();
  }

  @Test
  void payloadsLandWhereTheyAreReadAndHeadersOnTheHost() {
    start();
    final BlockSource source = made.write(owner, "1", MAPS, BATCHES);
    assertThat(read(source)).isGreaterThan(source.blocks().size());
    // What one map task packed at once comes by one get, within a window.
    assertThat(gets.get()).isBetween(1, 2 * MAPS * BATCHES);
  }

  @Test
  void whatAdaptersWroteIsFlushedBeforeItIsReadWhereTheDriverDoesNotOrderIt() {
    readersDevice.adapterWrites(AdapterWrites.FLUSHED);
    start();
    final BlockSource source = made.write(owner, "1", MAPS, BATCHES);
    assertThat(read(source)).isPositive();
    final int first = readersDevice.flushes();
    assertThat(first).isPositive();
    assertThat(read(source)).isPositive();
    assertThat(readersDevice.flushes()).as("not at first contact alone").isGreaterThan(first);
    assertThat(ownersDevice.flushes()).isZero();
  }

  @Test
  void nothingIsGotIntoMemoryWhereNobodyKnowsWhenItHasArrived() {
    readersDevice.adapterWrites(AdapterWrites.UNORDERED);
    start();
    readStaged(made.write(owner, "1", MAPS, BATCHES));
    assertThat(gets.get()).isZero();
  }

  @Test
  void headersAreGotBesideWhereOnlyTheGpusAreLinked() {
    linked = true;
    start(false, POOL);
    assertThat(read(made.write(owner, "1", MAPS, BATCHES))).isPositive();
    assertThat(gets).hasPositiveValue();
  }

  @Test
  void emulatedGetsBetweenDevicesAreNotTaken() {
    start(false, POOL);
    readStaged(made.write(owner, "1", MAPS, BATCHES));
    assertThat(gets).hasValue(0);
  }

  @Test
  void theHostCannotGetWhatLiesOnADevice() throws Exception {
    start();
    final BlockSource source = made.write(owner, "1", MAPS, BATCHES);
    try (Fetch fetcher = reader.fetch(List.of(source), staging, TestNodes.quiet(), () -> false)) {
      while (fetcher.next()) {
        assertThat(fetcher.block().path()).isEqualTo(BlockPath.STAGED);
        assertThat(TestNodes.read(fetcher.block()))
            .isEqualTo(GpuBlocks.expected(fetcher.block().block(), BATCHES));
      }
    }
    assertThat(gets).hasValue(0);
  }

  @Test
  void withoutRoomOnTheReadersDeviceNothingIsGot() {
    start(true, 4 << 10);
    readStaged(made.write(owner, "1", MAPS, BATCHES));
  }

  @Test
  void aSegmentThatCannotBeRegisteredIsNotGot() {
    start();
    assertThat(read(made.write(owner, "1", 1, BATCHES))).isPositive();
    owner.unregisterShuffle(1);
    engines.get(0).refuses = true; // The segment that was read has its key already.
    final BlockSource source = made.write(owner, "1", MAPS, BATCHES);
    readMixed(source);
    final int refusals = engines.get(0).refusals.get();
    assertThat(refusals).isPositive();
    channels.breakLinks(); // The reader asks for its key again.
    readMixed(source);
    assertThat(engines.get(0).refusals).as("it is not tried again").hasValue(refusals);
  }

  private void readMixed(final BlockSource source) {
    final AtomicInteger staged = new AtomicInteger();
    readersBlocks.readAll(
        reader,
        source,
        BATCHES,
        staging,
        block -> staged.addAndGet(block.path() == BlockPath.STAGED ? 1 : 0));
    assertThat(staged).hasPositiveValue();
  }

  @Test
  void memoryThatCannotBeRegisteredForATestKeepsNobodyFromTheRest() {
    start();
    engines.get(1).refuses = true;
    readStaged(made.write(owner, "1", MAPS, BATCHES));
    assertThat(gets).hasValue(0);
  }

  @Test
  void testReadsBetweenDevicesThatFailKeepNobodyFromTheRest() {
    start();
    engines.get(1).broken = true;
    final BlockSource source = made.write(owner, "1", MAPS, BATCHES);
    readStaged(source);
    engines.get(1).broken = false;
    channels.breakLinks();
    readStaged(source); // It is not tried again.
  }

  @Test
  void oneOwnerWhoseTestReadFailedDoesNotStandForOthers() {
    start();
    engines.get(1).broken = true;
    readStaged(made.write(owner, "1", MAPS, BATCHES));
    engines.get(1).broken = false;
    assertThat(readFromAnother("3")).isPositive();
  }

  /** Payloads on the reader's device of what one more owner has written, which ends. */
  private int readFromAnother(final String executor) {
    final DeviceOnlyGpu device = new DeviceOnlyGpu();
    try (ShuffleNode other = ShuffleNode.start(config(executor, true, POOL), device);
        GpuBlocks others = new GpuBlocks(device)) {
      final int onDevice =
          readersBlocks.readAll(
              reader, others.write(other, executor, MAPS, BATCHES), BATCHES, staging, block -> {});
      other.unregisterShuffle(1);
      TestNodes.assertNothingHeld(other);
      return onDevice;
    }
  }

  @Test
  void whereNoOwnersGpuCanBeReadNoMoreAreTried() {
    start();
    engines.get(1).broken = true;
    readStaged(made.write(owner, "1", MAPS, BATCHES));
    assertThat(readFromAnother("3")).isZero();
    assertThat(readFromAnother("4")).isZero();
    engines.get(1).broken = false;
    assertThat(readFromAnother("5")).isZero();
  }

  @Test
  void withoutReachNothingIsGot() {
    reachable = false;
    start();
    readStaged(made.write(owner, "1", MAPS, BATCHES));
    assertThat(gets).hasValue(0);
  }

  @Test
  void aLeaseThatWasLostOnTheWayIsTakenAgain() {
    start();
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
