package io.zerohop.shuffle;

import static io.zerohop.shuffle.TestNodes.eventually;
import static org.assertj.core.api.Assertions.assertThat;

import io.zerohop.device.Leaks;
import io.zerohop.device.TestClock;
import io.zerohop.device.posix.Clock;
import io.zerohop.shuffle.block.BlockPath;
import io.zerohop.shuffle.block.BlockSource;
import io.zerohop.shuffle.catalog.MapOutputLease;
import io.zerohop.shuffle.fetch.Fetch;
import io.zerohop.shuffle.pool.PoolFullException;
import io.zerohop.shuffle.pool.PoolStats;
import io.zerohop.shuffle.spill.Evictor;
import io.zerohop.shuffle.spill.Evictor.EvictionScope;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/**
 * GPU memory that goes back to the driver when others need it: what goes, what stays, for how long.
 */
class ShrinkTest {
  private static final int PARTITIONS = 16;
  private static final int MOST = 3_000;
  private static final int BATCHES = 2;
  private static final int SHUFFLE = 1;
  private static final int OTHER_SHUFFLE = 2;
  private static final long SEGMENT = 256 << 10;
  private static final long DEVICE_POOL = 4 * SEGMENT;

  /** Long enough for all that can go to be gone, on a busy machine, too. */
  private static final Duration PATIENT = Duration.ofSeconds(60);

  private static final Duration BRIEF = Duration.ofSeconds(2);

  @TempDir private java.nio.file.Path base;
  private final Leaks leaks = new Leaks();
  private final List<ShuffleNode> nodes = new ArrayList<>();

  @AfterEach
  void noLeaks() {
    for (final ShuffleNode node : nodes) {
      node.unregisterShuffle(SHUFFLE);
      node.unregisterShuffle(OTHER_SHUFFLE);
      TestNodes.assertNothingHeld(node);
      node.close();
    }
    leaks.check();
  }

  /** A node that moves nothing and keeps what is empty unless it is asked to. */
  private ShuffleNode node(final String executorId, final double spillStart) {
    return node(executorId, spillStart, Clock.system());
  }

  private ShuffleNode node(final String executorId, final double spillStart, final Clock clock) {
    final ShuffleNode node =
        ShuffleNode.start(
            TestNodes.config(base.resolve("s"), executorId)
                .set("device.pool.size", DEVICE_POOL)
                .set("device.segment.size", SEGMENT)
                .set("spill.start", spillStart)
                .set("spill.idle", Duration.ofHours(1))
                .set("segment.idle", Duration.ofHours(1))
                .clock(clock),
            new DeviceOnlyGpu());
    nodes.add(node);
    return node;
  }

  private ShuffleNode node(final String executorId) {
    return node(executorId, 0.999);
  }

  /** Writes outputs until three of four segments are in use; returns how many. */
  private static int fill(final ShuffleNode node) {
    final int maps = write(node, SHUFFLE, 0.7);
    assertThat(device(node).reservedBytes()).isEqualTo(3 * SEGMENT);
    return maps;
  }

  /** Writes outputs until a part of the pool is in use; returns how many. */
  private static int write(final ShuffleNode node, final int shuffleId, final double part) {
    int maps = 0;
    while (device(node).usedBytes() < part * DEVICE_POOL) {
      TestBlocks.write(node, shuffleId, maps++, BATCHES, PARTITIONS, MOST);
    }
    return maps;
  }

  private static PoolStats device(final ShuffleNode node) {
    return node.stats().device();
  }

  private static BlockSource source(final ShuffleNode owner, final int maps) {
    return TestBlocks.source(
        "owner", owner.location(), SHUFFLE, 0, maps, BATCHES, PARTITIONS, MOST);
  }

  private static void check(final ShuffleNode reader, final ShuffleNode owner, final int maps) {
    assertThat(
            TestNodes.fetchAndCheck(
                reader, TestNodes.noStaging(), BATCHES, MOST, source(owner, maps)))
        .containsOnlyKeys(reader == owner ? BlockPath.LOCAL : BlockPath.PEER);
  }

  @Test
  void whatIsEmptyGoesAtOnce() {
    final ShuffleNode owner = node("owner");
    fill(owner);
    owner.unregisterShuffle(SHUFFLE);
    eventually("it is empty", () -> device(owner).usedBytes() == 0);
    assertThat(owner.shrinkableDeviceBytes(EvictionScope.COLD)).isEqualTo(3 * SEGMENT);
    assertThat(owner.shrinkDevicePool(1, EvictionScope.COLD, Duration.ZERO)).isEqualTo(3 * SEGMENT);
    assertThat(device(owner).reservedBytes()).isZero();
    assertThat(owner.stats().evictions().shrunkBytes()).isEqualTo(3 * SEGMENT);
    assertThat(owner.shrinkDevicePool(1, EvictionScope.ALL, PATIENT))
        .as("there is no more")
        .isZero();
  }

  @Test
  void whatIsInUseMovesOnlyAsFarAsItHasToAndIsReadWhereItLies() {
    final ShuffleNode owner = node("owner");
    final ShuffleNode reader = node("reader");
    final int maps = fill(owner);
    final long asked = SEGMENT / 2;
    assertThat(owner.shrinkDevicePool(asked, EvictionScope.COLD, PATIENT))
        .as("it is not cold")
        .isZero();
    assertThat(owner.stats().evictions().toHost().outputs()).isZero();

    assertThat(owner.shrinkDevicePool(asked, EvictionScope.ALL, PATIENT)).isEqualTo(SEGMENT);
    assertThat(device(owner).reservedBytes()).isEqualTo(2 * SEGMENT);
    assertThat(device(owner).usedBytes()).isPositive();
    assertThat(owner.stats().evictions().toHost().outputs()).isBetween(1L, maps - 1L);
    check(reader, owner, maps);
    check(owner, owner, maps);

    assertThat(owner.shrinkDevicePool(DEVICE_POOL, EvictionScope.ALL, PATIENT))
        .isEqualTo(2 * SEGMENT);
    assertThat(device(owner).reservedBytes()).isZero();
    assertThat(owner.stats().evictions().shrunkBytes()).isEqualTo(3 * SEGMENT);
    check(reader, owner, maps);
    check(owner, owner, maps);
  }

  @ParameterizedTest
  @EnumSource(EvictionScope.class)
  void outputsOfFinishedQueriesGoBeforeColderOnes(final EvictionScope scope) {
    final ShuffleNode owner = node("owner");
    write(owner, SHUFFLE, 0.35);
    write(owner, OTHER_SHUFFLE, 0.7);
    owner.finished(Map.of(OTHER_SHUFFLE, 0L));
    assertThat(owner.shrinkableDeviceBytes(scope)).isGreaterThanOrEqualTo(SEGMENT);
    assertThat(owner.shrinkDevicePool(SEGMENT / 2, scope, PATIENT)).isEqualTo(SEGMENT);
    eventually(
        "all that moved is counted",
        () -> SpillTest.isOfFinished(owner.stats().evictions().toHost()));
  }

  @Test
  void whereNothingMayMoveOnlyWhatIsEmptyGoes() {
    final ShuffleNode owner = node("owner", 1);
    final int maps = fill(owner);
    assertThat(owner.shrinkableDeviceBytes(EvictionScope.ALL)).isZero();
    assertThat(owner.shrinkDevicePool(SEGMENT, EvictionScope.ALL, PATIENT)).isZero();
    assertThat(device(owner).reservedBytes()).isEqualTo(3 * SEGMENT);
    check(owner, owner, maps);
  }

  @Test
  void whatIsHeldStaysAndIsNotCounted() {
    final ShuffleNode owner = node("owner");
    final int maps = fill(owner);
    try (MapOutputLease held = owner.lease(SHUFFLE, 0)) {
      final long asked = DEVICE_POOL;
      final long returned = owner.shrinkDevicePool(asked, EvictionScope.ALL, PATIENT);
      assertThat(returned).isBetween(SEGMENT, 2 * SEGMENT);
      assertThat(device(owner).reservedBytes()).isEqualTo(3 * SEGMENT - returned);
      assertThat(held.bytes(0)).isGreaterThanOrEqualTo(0);
    }
    eventually("nobody holds it", () -> device(owner).usedBytes() == 0);
    owner.shrinkDevicePool(1, EvictionScope.COLD, Duration.ZERO);
    assertThat(device(owner).reservedBytes()).isZero();
    check(owner, owner, maps);
  }

  @Test
  void readersLeasesAreWaitedForNoLongerThanTheLimit() {
    final ShuffleNode owner = node("owner");
    final ShuffleNode reader = node("reader");
    final int maps = fill(owner);
    try (Fetch fetcher =
        reader.fetch(
            List.of(source(owner, maps)), TestNodes.noStaging(), TestNodes.quiet(), () -> false)) {
      assertThat(fetcher.next()).isTrue();
      assertThat(reader.stats().leases().open()).isPositive();
      assertThat(owner.shrinkDevicePool(SEGMENT, EvictionScope.ALL, BRIEF)).isZero();
      assertThat(device(owner).reservedBytes()).isEqualTo(3 * SEGMENT);
      final long moved = owner.stats().evictions().toHost().bytes();
      assertThat(moved).as("no more than will be enough").isBetween(SEGMENT, 2 * SEGMENT);
      assertThat(owner.shrinkDevicePool(SEGMENT, EvictionScope.ALL, PATIENT))
          .as("in vain")
          .isZero();
      assertThat(owner.stats().evictions().toHost().bytes()).isEqualTo(moved);
    }
    eventually("the reader has passed", () -> Holdings.of(owner).retiredRegions() == 0);
    owner.shrinkDevicePool(1, EvictionScope.COLD, Duration.ZERO);
    assertThat(device(owner).reservedBytes()).isLessThan(3 * SEGMENT);
    check(reader, owner, maps);
    check(owner, owner, maps);
  }

  @Test
  void thePoolTakesNothingInForAWhileAndThenItDoes() {
    final TestClock clock = TestClock.standing();
    final ShuffleNode owner = node("owner", 0.999, clock);
    final int maps = fill(owner);
    assertThat(owner.shrinkDevicePool(SEGMENT, EvictionScope.ALL, PATIENT)).isPositive();
    assertThat(writes(owner)).isFalse();
    clock.advance(Evictor.SHRINK_PAUSE.minusNanos(1));
    assertThat(writes(owner)).isFalse();
    clock.advance(Duration.ofNanos(1));
    assertThat(writes(owner)).as("it grows again").isTrue();
    assertThat(device(owner).usedBytes()).isPositive();
    check(owner, owner, maps);
  }

  private static boolean writes(final ShuffleNode node) {
    try {
      TestBlocks.write(node, OTHER_SHUFFLE, 0, BATCHES, PARTITIONS, MOST);
      return true;
    } catch (final PoolFullException e) {
      assertThat(e).hasMessageContaining("spark.zerohop.device.pool.size");
      return false;
    }
  }

  @Test
  void manyMayAskWhileOthersRead() throws Exception {
    final ShuffleNode owner = node("owner");
    final ShuffleNode reader = node("reader");
    final int maps = fill(owner);
    final AtomicBoolean asked = new AtomicBoolean();
    final ExecutorService threads = Executors.newFixedThreadPool(6);
    long sum = 0;
    try {
      final List<Future<?>> reads = new ArrayList<>();
      for (final ShuffleNode each : nodes) {
        reads.add(
            threads.submit(
                () -> {
                  do {
                    check(each, owner, maps);
                  } while (!asked.get());
                }));
      }
      final List<Future<Long>> answers = new ArrayList<>();
      for (int i = 0; i < 4; i++) {
        answers.add(
            threads.submit(() -> owner.shrinkDevicePool(SEGMENT, EvictionScope.ALL, PATIENT)));
      }
      for (final Future<Long> answer : answers) {
        sum += answer.get(90, TimeUnit.SECONDS);
      }
      asked.set(true);
      for (final Future<?> read : reads) {
        read.get(60, TimeUnit.SECONDS);
      }
    } finally {
      threads.shutdownNow();
      assertThat(threads.awaitTermination(30, TimeUnit.SECONDS)).isTrue();
    }
    assertThat(sum)
        .isEqualTo(owner.stats().evictions().shrunkBytes())
        .isGreaterThanOrEqualTo(SEGMENT);
    assertThat(device(owner).returnedBytes()).isGreaterThanOrEqualTo(sum);
    check(reader, owner, maps);
  }

  @Test
  void withoutAGpuThereIsNothingToGive() {
    final ShuffleNode owner = TestNodes.start(base.resolve("s"), "owner");
    nodes.add(owner);
    assertThat(owner.shrinkableDeviceBytes(EvictionScope.ALL)).isZero();
    assertThat(owner.shrinkDevicePool(1, EvictionScope.ALL, PATIENT)).isZero();
  }
}
