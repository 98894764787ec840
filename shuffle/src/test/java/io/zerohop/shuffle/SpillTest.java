package io.zerohop.shuffle;

import static io.zerohop.shuffle.TestNodes.eventually;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.zerohop.device.Leaks;
import io.zerohop.shuffle.block.BlockPath;
import io.zerohop.shuffle.block.BlockSource;
import io.zerohop.shuffle.catalog.MapOutputLease;
import io.zerohop.shuffle.fetch.BlockFetchException;
import io.zerohop.shuffle.pool.PoolStats;
import io.zerohop.shuffle.spill.Evictor.SpilledOutputs;
import java.time.Duration;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import org.agrona.UnsafeAccess;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/** Map outputs that make room: what moves, what stays, and that readers never see a wrong byte. */
class SpillTest {
  private static final int PARTITIONS = 16;
  private static final int MOST = 3_000;
  private static final int BATCHES = 2;
  private static final int SHUFFLE = 1;
  private static final int OTHER_SHUFFLE = 2;
  private static final long HOST_POOL = 4 << 20;
  private static final long DEVICE_POOL = 1 << 20;

  /** So that what is written does not move before all of it is, and no more is needed for that. */
  private static final Duration AFTERWARDS = Duration.ofMillis(500);

  @TempDir private java.nio.file.Path base;
  private final Leaks leaks = new Leaks();
  private final StoredBlocks storage = new StoredBlocks();

  /** Nodes and where each of them stores. */
  private final Map<ShuffleNode, StoredBlocks> nodes = new LinkedHashMap<>();

  @AfterEach
  void noLeaks() {
    storage.goOn();
    for (final ShuffleNode node : nodes.keySet()) {
      node.unregisterShuffle(SHUFFLE);
      node.unregisterShuffle(OTHER_SHUFFLE);
      TestNodes.assertNothingHeld(node);
      node.close();
    }
    leaks.check();
  }

  private ShuffleNode node(final String executorId, final boolean gpu, final Duration idle) {
    return node(executorId, gpu ? new DeviceOnlyGpu() : null, idle);
  }

  private ShuffleNode node(final String executorId, final DeviceOnlyGpu gpu, final Duration idle) {
    return node(executorId, gpu, idle, 0.5, storage);
  }

  private ShuffleNode node(
      final String executorId,
      final DeviceOnlyGpu gpu,
      final Duration idle,
      final double start,
      final StoredBlocks stored) {
    final ShuffleNode node =
        ShuffleNode.start(
            TestNodes.config(base.resolve("s"), executorId)
                .set("device.pool.size", DEVICE_POOL)
                .set("device.segment.size", DEVICE_POOL / 4)
                .set("pool.size", HOST_POOL)
                .set("segment.size", HOST_POOL / 4)
                .set("spill.start", start)
                .set("spill.idle", idle)
                .coldStorage(stored),
            gpu);
    nodes.put(node, stored);
    return node;
  }

  /** Writes outputs until a pool is used to so much of its limit; returns how many. */
  private static int write(
      final ShuffleNode node, final int shuffleId, final int first, final double part) {
    int maps = 0;
    do {
      TestBlocks.write(node, shuffleId, first + maps, BATCHES, PARTITIONS, MOST);
      maps++;
    } while (used(pool(node)) < part);
    return maps;
  }

  private static PoolStats pool(final ShuffleNode node) {
    return node.hasGpu() ? node.stats().device() : node.stats().host();
  }

  private static double used(final PoolStats pool) {
    return (double) pool.usedBytes() / pool.limitBytes();
  }

  static boolean isOfFinished(final SpilledOutputs moved) {
    return moved.bytes() > 0 && moved.finishedBytes() == moved.bytes();
  }

  private static BlockSource source(
      final ShuffleNode owner, final int shuffleId, final int first, final int maps) {
    return TestBlocks.source(
        "owner", owner.location(), shuffleId, first, maps, BATCHES, PARTITIONS, MOST);
  }

  private Map<BlockPath, Integer> read(
      final ShuffleNode reader, final ShuffleNode owner, final int shuffleId, final int maps) {
    return TestNodes.fetchAndCheck(
        reader, nodes.get(owner), BATCHES, MOST, source(owner, shuffleId, 0, maps));
  }

  @Test
  void coldOutputsLeaveTheGpuAndArePartOfTheNodeStill() {
    final ShuffleNode owner = node("owner", true, AFTERWARDS);
    final ShuffleNode reader = node("reader", true, Duration.ofHours(1));
    final int maps = write(owner, SHUFFLE, 0, 0.7);
    eventually("the pool is relieved", () -> used(owner.stats().device()) <= 0.5);
    assertThat(owner.stats().evictions().toHost().outputs()).isPositive();
    assertThat(owner.stats().evictions().toHost().bytes()).isPositive();
    assertThat(Holdings.of(owner).outputs()).isEqualTo(maps);
    assertThat(read(reader, owner, SHUFFLE, maps)).containsOnlyKeys(BlockPath.PEER);
    assertThat(read(owner, owner, SHUFFLE, maps)).containsOnlyKeys(BlockPath.LOCAL);
    assertThat(owner.stats().evictions().toFiles().outputs()).isZero();
  }

  @Test
  void whereTheGpuDoesNotReachHostSegmentsTheyGoByCopies() {
    final DeviceOnlyGpu gpu = new DeviceOnlyGpu();
    gpu.refusePins(true);
    final ShuffleNode owner = node("owner", gpu, AFTERWARDS);
    final int maps = write(owner, SHUFFLE, 0, 0.7);
    eventually("the pool is relieved", () -> used(owner.stats().device()) <= 0.5);
    assertThat(owner.stats().evictions().toHost().outputs()).isPositive();
    assertThat(read(owner, owner, SHUFFLE, maps)).containsOnlyKeys(BlockPath.LOCAL);
  }

  @ParameterizedTest
  @EnumSource(names = {"REFUSED", "TIMED_OUT"})
  void whatTheGpuCannotCopyStaysWhereItIs(final DeviceOnlyGpu.Failure how) {
    final DeviceOnlyGpu gpu = new DeviceOnlyGpu();
    gpu.fail("zerohop-spiller", how);
    final ShuffleNode owner = node("owner", gpu, Duration.ZERO);
    final int maps = write(owner, SHUFFLE, 0, 0.7);
    eventually("all were tried", () -> owner.stats().evictions().toHost().failures() == maps);
    assertThat(owner.stats().evictions().toHost().outputs()).isZero();
    assertThat(used(owner.stats().device())).isGreaterThanOrEqualTo(0.7);
    gpu.fail("zerohop-spiller", DeviceOnlyGpu.Failure.NONE);
    assertThat(read(owner, owner, SHUFFLE, maps)).containsOnlyKeys(BlockPath.LOCAL);
    final int fresh = write(owner, OTHER_SHUFFLE, 0, 0.7);
    eventually("others go", () -> owner.stats().evictions().toHost().outputs() == fresh);
    assertThat(read(owner, owner, OTHER_SHUFFLE, fresh)).containsOnlyKeys(BlockPath.LOCAL);
  }

  @Test
  void coldOutputsLeaveHostMemoryForFiles() {
    final ShuffleNode owner = node("owner", false, Duration.ZERO);
    final ShuffleNode reader = node("reader", false, Duration.ofHours(1));
    final int maps = write(owner, SHUFFLE, 0, 0.7);
    eventually("the pool is relieved", () -> used(owner.stats().host()) <= 0.5);
    eventually(
        "both are counted",
        () -> owner.stats().evictions().toFiles().outputs() == storage.outputs());
    eventually(
        "each is in one place", () -> Holdings.of(owner).outputs() == maps - storage.outputs());
    assertThat(read(reader, owner, SHUFFLE, maps))
        .containsOnlyKeys(BlockPath.PEER, BlockPath.STAGED);
    assertThat(read(owner, owner, SHUFFLE, maps))
        .containsOnlyKeys(BlockPath.LOCAL, BlockPath.STAGED);
  }

  @Test
  void theColdestShuffleGoesFirstAndWarmOnesStay() {
    final Duration idle = Duration.ofMillis(700);
    final ShuffleNode owner = node("owner", false, idle);
    final int old = write(owner, SHUFFLE, 0, 0.3);
    final long written = System.nanoTime();
    eventually("it is cold", () -> System.nanoTime() - written > 2 * idle.toNanos());
    assertThat(storage.outputs()).as("there is room").isZero();
    storage.holdBack();
    final int fresh = write(owner, OTHER_SHUFFLE, 0, 0.6);
    storage.goOn();
    eventually("the pool is relieved", () -> used(owner.stats().host()) <= 0.5);
    assertThat(storage.outputs(SHUFFLE)).isPositive();
    assertThat(read(owner, owner, OTHER_SHUFFLE, fresh)).containsOnlyKeys(BlockPath.LOCAL);
    assertThat(read(owner, owner, SHUFFLE, old)).containsKey(BlockPath.STAGED);
  }

  @Test
  void whatIsUsedStays() {
    final ShuffleNode owner = node("owner", false, Duration.ofHours(1));
    final int maps = write(owner, SHUFFLE, 0, 0.9);
    assertThatThrownBy(() -> write(owner, SHUFFLE, maps, 2))
        .hasMessageContaining("spark.zerohop.pool.size");
    assertThat(read(owner, owner, SHUFFLE, maps)).containsOnlyKeys(BlockPath.LOCAL);
    assertThat(storage.outputs()).isZero();
  }

  @Test
  void outputsOfFinishedQueriesGoAtOnceAndThoseInUseStay() {
    final ShuffleNode owner = node("owner", false, Duration.ofHours(1));
    owner.onPressure(() -> owner.finished(Map.of(SHUFFLE, 0L)));
    final int old = write(owner, SHUFFLE, 0, 0.3);
    storage.holdBack(); // Or what is in use would fill the pool alone.
    final int fresh = write(owner, OTHER_SHUFFLE, 0, 0.6);
    storage.goOn();
    eventually("the pool is relieved", () -> used(owner.stats().host()) <= 0.5);
    assertThat(read(owner, owner, SHUFFLE, old)).containsKey(BlockPath.STAGED);
    assertThat(read(owner, owner, OTHER_SHUFFLE, fresh)).containsOnlyKeys(BlockPath.LOCAL);
    eventually(
        "all that moved is counted", () -> isOfFinished(owner.stats().evictions().toFiles()));
  }

  @Test
  void whatIsReadAgainIsInUseUntilThatQueryEnds() {
    final ShuffleNode owner = node("owner", false, Duration.ofHours(1));
    final int maps = write(owner, SHUFFLE, 0, 0.3);
    owner.finished(Map.of(SHUFFLE, 0L));
    read(owner, owner, SHUFFLE, maps);
    final AtomicInteger questions = new AtomicInteger();
    owner.onPressure(questions::incrementAndGet);
    write(owner, OTHER_SHUFFLE, 0, 0.6);
    eventually("rounds have passed", () -> questions.get() > 2);
    assertThat(storage.outputs()).isZero();
    owner.finished(Map.of(SHUFFLE, 0L));
    eventually("the pool is relieved", () -> used(owner.stats().host()) <= 0.5);
    assertThat(storage.outputs(SHUFFLE)).isPositive();
    assertThat(storage.outputs(OTHER_SHUFFLE)).isZero(); // The others may still be on their way.
  }

  @Test
  void aRefusedAllocationMakesRoomAlthoughThePoolIsNotAsFullAsThat() {
    final ShuffleNode owner = node("owner", null, Duration.ZERO, 0.999, storage);
    final int[] maps = {0};
    assertThatThrownBy(() -> maps[0] += write(owner, SHUFFLE, maps[0], 2))
        .hasMessageContaining("no room");
    eventually("room was made", () -> storage.outputs() > 0);
    eventually("it is free", () -> used(owner.stats().host()) < 0.85);
  }

  @Test
  void whatCannotBeStoredStays() {
    final ShuffleNode owner = node("owner", false, Duration.ZERO);
    storage.fail();
    final int maps = write(owner, SHUFFLE, 0, 0.7);
    eventually("it was tried", () -> owner.stats().evictions().toFiles().failures() > 0);
    assertThat(owner.stats().evictions().toFiles().outputs()).isZero();
    assertThat(read(owner, owner, SHUFFLE, maps)).containsOnlyKeys(BlockPath.LOCAL);
  }

  /** Also if its thread is interrupted, as threads are that end. */
  @Test
  void aNodeThatEndsWhileAnOutputMovesWaitsForThat() throws Exception {
    final ShuffleNode owner = node("owner", false, Duration.ZERO);
    storage.holdBack();
    write(owner, SHUFFLE, 0, 0.6);
    eventually("one is being stored", () -> storage.storing() > 0);
    final AtomicBoolean interrupted = new AtomicBoolean();
    final Thread end =
        new Thread(
            () -> {
              Thread.currentThread().interrupt();
              owner.close();
              interrupted.set(Thread.interrupted());
            });
    end.start();
    end.join(300);
    assertThat(end.isAlive()).isTrue();
    assertThat(owner.stats().host().reservedBytes()).isPositive();
    storage.goOn();
    end.join(TimeUnit.SECONDS.toMillis(20));
    assertThat(interrupted).as("it has ended, and knows that it was interrupted").isTrue();
    nodes.remove(owner);
  }

  @Test
  void damageIsNotMovedToWhereItWouldLookRight() {
    final ShuffleNode owner = node("owner", false, Duration.ofMillis(500));
    final int maps = write(owner, SHUFFLE, 0, 0.45);
    final int damaged = 1;
    try (MapOutputLease lease = owner.lease(SHUFFLE, damaged)) {
      final boolean[] done = {false};
      for (int partition = 0; partition < PARTITIONS && !done[0]; partition++) {
        lease.forEachExtent(
            partition,
            (address, length) -> {
              if (!done[0]) {
                final byte before = UnsafeAccess.UNSAFE.getByte(address);
                UnsafeAccess.UNSAFE.putByte(address, (byte) (before ^ 4));
                done[0] = true;
              }
            });
      }
    }
    write(owner, OTHER_SHUFFLE, 0, 0.6);
    eventually("those behind it have moved", () -> storage.outputs(SHUFFLE) > damaged + 1);
    assertThat(owner.holds(SHUFFLE, damaged)).isTrue();
    assertThatThrownBy(() -> read(owner, owner, SHUFFLE, maps))
        .isInstanceOf(BlockFetchException.class)
        .hasMessageContaining("damaged");
  }

  @Test
  void aShuffleThatEndsWhileItIsStoredLeavesNothing() {
    final ShuffleNode owner = node("owner", false, Duration.ZERO);
    storage.holdBack();
    write(owner, SHUFFLE, 0, 0.6);
    eventually("one is being stored", () -> storage.storing() > 0);
    owner.unregisterShuffle(SHUFFLE);
    storage.goOn();
    eventually("it was dropped", () -> storage.drops() > 0);
    assertThat(storage.outputs()).isZero();
  }

  /** Everything moves all the time, on two nodes whose readers read both. */
  @Test
  void readersNeverSeeAWrongByteWhileOutputsMove() throws Exception {
    final List<ShuffleNode> both = new ArrayList<>();
    for (final String name : List.of("owner", "reader")) {
      both.add(node(name, new DeviceOnlyGpu(), Duration.ZERO, 0.5, new StoredBlocks()));
    }
    final int maps = 60;
    final AtomicBoolean written = new AtomicBoolean();
    final ExecutorService threads = Executors.newFixedThreadPool(4);
    try {
      final List<Future<?>> work = new ArrayList<>();
      for (final ShuffleNode owner : both) {
        final int[] done = {0};
        for (; done[0] < 10; done[0]++) {
          TestBlocks.write(owner, SHUFFLE, done[0], BATCHES, PARTITIONS, MOST);
        }
        for (final ShuffleNode reader : both) {
          work.add(
              threads.submit(
                  () -> {
                    for (int round = 0; round < 3 || !written.get(); round++) {
                      read(reader, owner, SHUFFLE, 10);
                    }
                  }));
        }
      }
      for (int map = 0; map < maps; map++) {
        for (final ShuffleNode owner : both) {
          TestBlocks.write(owner, OTHER_SHUFFLE, map, BATCHES, PARTITIONS, MOST);
        }
        TimeUnit.MILLISECONDS.sleep(10);
      }
      written.set(true);
      for (final Future<?> each : work) {
        each.get(60, TimeUnit.SECONDS);
      }
    } finally {
      threads.shutdownNow();
      assertThat(threads.awaitTermination(30, TimeUnit.SECONDS)).isTrue();
    }
    for (final ShuffleNode owner : both) {
      eventually("some moved", () -> owner.stats().evictions().toHost().outputs() > 0);
      eventually("some are stored", () -> nodes.get(owner).outputs() > 0);
      assertThat(read(owner, owner, OTHER_SHUFFLE, maps)).isNotEmpty();
    }
  }
}
