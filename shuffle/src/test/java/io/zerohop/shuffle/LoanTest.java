package io.zerohop.shuffle;

import static io.zerohop.shuffle.TestNodes.eventually;
import static org.assertj.core.api.Assertions.assertThat;

import io.zerohop.device.Leaks;
import io.zerohop.device.SegmentHandle;
import io.zerohop.device.TestClock;
import io.zerohop.device.exchange.PeerLink;
import io.zerohop.device.exchange.SocketFolder;
import io.zerohop.shuffle.block.BlockPath;
import io.zerohop.shuffle.block.BlockSource;
import io.zerohop.shuffle.pool.PoolStats;
import io.zerohop.shuffle.spill.Evictor;
import io.zerohop.shuffle.spill.Evictor.EvictionScope;
import io.zerohop.shuffle.transport.FakeStaging;
import io.zerohop.shuffle.write.MapOutput;
import java.io.IOException;
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
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** GPU memory that executors of a node lend to each other: who gets it, and how it comes back. */
class LoanTest {
  private static final int PARTITIONS = 16;
  private static final int MOST = 3_000;
  private static final int BATCHES = 2;
  private static final int SHUFFLE = 1;
  private static final int OTHER_SHUFFLE = 2;
  private static final long SEGMENT = TestNodes.LINKED_SEGMENT;
  private static final long SMALL = 4 * SEGMENT;
  private static final long LARGE = 32 * SEGMENT;
  private static final Duration LIMIT = Duration.ofSeconds(30);

  @TempDir private java.nio.file.Path base;
  private int hosts;
  private final Leaks leaks = new Leaks();

  /** Neighbours are met every second. */
  private final TestClock clock = TestClock.running();

  private final Map<String, ShuffleNode> nodes = new LinkedHashMap<>();

  @AfterEach
  void noLeaks() {
    List.copyOf(nodes.keySet()).forEach(this::end);
    leaks.check();
  }

  private void end(final String name) {
    final ShuffleNode node = nodes.remove(name);
    node.unregisterShuffle(SHUFFLE);
    node.unregisterShuffle(OTHER_SHUFFLE);
    TestNodes.assertNothingHeld(node);
    node.close();
  }

  private ShuffleNode node(final String name, final int gpu, final long pool) {
    return node(name, linked(name, gpu, pool), new DeviceOnlyGpu());
  }

  private ShuffleNode.Setup linked(final String name, final int gpu, final long pool) {
    return TestNodes.linked(base.resolve("s"), name, gpu, pool);
  }

  private ShuffleNode node(
      final String name, final ShuffleNode.Setup setup, final DeviceOnlyGpu gpu) {
    final ShuffleNode node = ShuffleNode.start(setup.clock(clock), gpu);
    nodes.put(name, node);
    return node;
  }

  private static PoolStats device(final ShuffleNode node) {
    return node.stats().device();
  }

  private static long borrowed(final ShuffleNode node) {
    return device(node).loans().borrowedBytes();
  }

  private static long lent(final ShuffleNode node) {
    return device(node).loans().lentBytes();
  }

  private static boolean put(final ShuffleNode node, final int shuffleId, final int map) {
    return TestBlocks.put(node, shuffleId, map, BATCHES, PARTITIONS, MOST);
  }

  /**
   * Writes outputs until so many bytes lie in GPU memory; returns how many outputs lie there. What
   * found no room is written again: host memory would be full before a loan that comes late.
   */
  private static int write(final ShuffleNode node, final int shuffleId, final long bytes) {
    int maps = 0;
    while (device(node).usedBytes() < bytes) {
      maps += put(node, shuffleId, maps) ? 1 : 0;
      if (borrowed(node) < device(node).loans().borrowedUsedBytes() + SEGMENT / 2) {
        sleep(); // As slow as tasks are, or what is asked for comes too late on a busy machine.
      }
    }
    return maps;
  }

  private static void sleep() {
    try {
      Thread.sleep(2);
    } catch (final InterruptedException e) {
      throw new AssertionError(e);
    }
  }

  private static BlockSource source(final ShuffleNode owner, final int shuffleId, final int maps) {
    return TestBlocks.source(
        "owner", owner.location(), shuffleId, 0, maps, BATCHES, PARTITIONS, MOST);
  }

  private static void check(final ShuffleNode reader, final ShuffleNode owner, final int maps) {
    assertThat(
            TestNodes.fetchAndCheck(
                reader, TestNodes.noStaging(), BATCHES, MOST, source(owner, SHUFFLE, maps)))
        .containsOnlyKeys(reader == owner ? BlockPath.LOCAL : BlockPath.PEER);
  }

  /** A borrower and a lender that know each other. */
  private void startTwo() {
    node("owner", 0, SMALL);
    node("lender", 1, LARGE);
    awaitMeeting();
  }

  private void awaitMeeting() {
    final int others = nodes.size() - 1;
    final TestClock.Flight flight = clock.fly();
    try {
      eventually(
          "all know all",
          () ->
              nodes.values().stream().allMatch(node -> node.stats().peers().readable() == others));
    } finally {
      flight.close();
    }
  }

  private ShuffleNode owner() {
    return nodes.get("owner");
  }

  private ShuffleNode lender() {
    return nodes.get("lender");
  }

  @Test
  void aFullPoolGoesOnInTheMemoryOfANeighbour() {
    startTwo();
    final ShuffleNode reader = node("reader", 2, SMALL);
    awaitMeeting();
    final int maps = write(owner(), SHUFFLE, 3 * SMALL);
    assertThat(device(owner()).loans().borrowedUsedBytes()).isGreaterThan(SMALL);
    eventually("both count the same", () -> lent(lender()) + lent(reader) == borrowed(owner()));
    assertThat(lent(lender())).isPositive();
    assertThat(device(lender()).reservedBytes()).as("it counts").isEqualTo(lent(lender()));
    assertThat(device(owner()).reservedBytes()).as("no part of it").isLessThanOrEqualTo(SMALL);
    for (final ShuffleNode node : List.of(owner(), lender(), reader)) {
      check(node, owner(), maps);
    }
    owner().unregisterShuffle(SHUFFLE);
    eventually("what is empty goes back", () -> lent(lender()) == 0 && borrowed(owner()) == 0);
    assertThat(device(lender()).reservedBytes()).isZero();
    assertThat(device(owner()).loans().borrowedPeakBytes()).isGreaterThan(SMALL);
  }

  @Test
  void itLendsHalfAndKeepsTheOtherHalf() {
    startTwo();
    final int maps = write(owner(), SHUFFLE, SMALL + LARGE / 2 - 4 * SEGMENT);
    int more = 0;
    int missed = 0;
    while (missed < 20 || lent(lender()) < LARGE / 2 - SEGMENT) {
      if (put(owner(), SHUFFLE, maps + more)) {
        more++;
      } else {
        missed++;
        sleep(); // What is asked for may be on its way.
      }
    }
    assertThat(lent(lender())).isBetween(LARGE / 2 - SEGMENT, LARGE / 2);
    check(lender(), owner(), maps + more);
  }

  @Test
  void whoNeedsItsMemoryGetsItBack() {
    startTwo();
    final int maps = write(owner(), SHUFFLE, 3 * SMALL);
    final long lent = lent(lender());
    final int own = write(lender(), OTHER_SHUFFLE, LARGE - SEGMENT);
    assertThat(device(lender()).loans().recalledSegments()).isPositive();
    eventually("it has it back", () -> lent(lender()) < lent);
    check(lender(), owner(), maps);
    check(owner(), owner(), maps);
    assertThat(owner().stats().evictions().toHost().bytes()).isPositive();
    assertThat(
            TestNodes.fetchAndCheck(
                owner(),
                TestNodes.noStaging(),
                BATCHES,
                MOST,
                source(lender(), OTHER_SHUFFLE, own)))
        .containsOnlyKeys(BlockPath.PEER);
  }

  @Test
  void whenRapidsNeedsMemoryWhatIsLentComesFirst() {
    startTwo();
    final int maps = write(owner(), SHUFFLE, 3 * SMALL);
    write(lender(), OTHER_SHUFFLE, 2 * SEGMENT);
    final long lent = lent(lender());
    assertThat(lender().shrinkDevicePool(lent, EvictionScope.COLD, LIMIT))
        .isGreaterThanOrEqualTo(lent);
    assertThat(lent(lender())).isZero();
    assertThat(lender().stats().evictions().toHost().outputs()).as("its own stay").isZero();
    check(lender(), owner(), maps);
    eventually("nothing is borrowed", () -> borrowed(owner()) == 0);
  }

  /** It moves nothing itself, but others do. */
  @Test
  void whatIsLentComesBackToAnExecutorThatMovesNothing() {
    node("owner", 0, SMALL);
    node("lender", linked("lender", 1, LARGE).set("spill.start", 1.0), new DeviceOnlyGpu());
    awaitMeeting();
    write(owner(), SHUFFLE, 2 * SMALL);
    final long lent = lent(lender());
    assertThat(lent).isPositive();
    assertThat(lender().shrinkableDeviceBytes(EvictionScope.COLD)).isEqualTo(lent);
    assertThat(lender().shrinkableDeviceBytes(EvictionScope.ALL)).isEqualTo(lent);
    final long before = device(lender()).returnedBytes();
    // As whoever is short of memory does: it is waited for only so long each time.
    eventually(
        "it came back",
        () -> {
          final long missing = before + lent - device(lender()).returnedBytes();
          return lender().shrinkDevicePool(missing, EvictionScope.COLD, LIMIT) == missing;
        });
    assertThat(device(lender()).returnedBytes() - before).isEqualTo(lent);
    assertThat(lent(lender())).isZero();
  }

  @Test
  void aPoolWhoseGpuIsShortBorrowsOnOthersAlone() {
    node("owner", 0, SMALL);
    node("lender", 0, LARGE);
    awaitMeeting();
    final int maps = write(owner(), SHUFFLE, 2 * SMALL);
    owner().shrinkDevicePool(SEGMENT, EvictionScope.COLD, Duration.ZERO);
    final long before = borrowed(owner());
    int more = maps;
    for (int i = 0; i < 60; i++) {
      put(owner(), SHUFFLE, more++);
      sleep();
    }
    final long paused = borrowed(owner());
    assertThat(paused).as("asked for before").isLessThanOrEqualTo(before + SEGMENT);
    clock.advance(Evictor.SHRINK_PAUSE);
    while (borrowed(owner()) <= paused) {
      more += put(owner(), SHUFFLE, more) ? 1 : 0;
      sleep();
    }
    check(lender(), owner(), more);
  }

  /** New segments of it are mapped ahead by the thread that borrows. */
  @Test
  void aNeighbourThatPausesKeepsNobodyFromBorrowingOfAnother() {
    node("owner", linked("owner", 0, SMALL).set("request.timeout", LIMIT), new DeviceOnlyGpu());
    node("lender", 1, LARGE);
    final DeviceOnlyGpu gpu = new DeviceOnlyGpu();
    final ShuffleNode slow = node("slow", linked("slow", 2, SMALL), gpu);
    awaitMeeting();
    gpu.holdExports(true);
    put(slow, OTHER_SHUFFLE, 0);
    for (int i = 0; i < 10; i++) {
      clock.advance(Duration.ofSeconds(1));
      sleep();
    }
    write(owner(), SHUFFLE, 2 * SMALL);
    assertThat(lent(lender())).isPositive();
    gpu.holdExports(false);
  }

  /** Its lender's GPU may be one that the reader does not reach. */
  @Test
  void aBorrowedSegmentThatCannotBeMappedIsNoReasonToLoseTheOthers() {
    startTwo();
    final DeviceOnlyGpu gpu = new DeviceOnlyGpu();
    final ShuffleNode reader = node("reader", linked("reader", 2, SMALL), gpu);
    awaitMeeting();
    check(reader, owner(), write(owner(), SHUFFLE, SMALL));
    gpu.refuseMaps(true);
    final int others = write(owner(), OTHER_SHUFFLE, 3 * SMALL);
    final BlockSource other = source(owner(), OTHER_SHUFFLE, others);
    final FakeStaging staging = new FakeStaging(BATCHES, MOST);
    assertThat(TestNodes.fetchAndCheck(reader, staging, BATCHES, MOST, other))
        .containsKey(BlockPath.STAGED);
    gpu.refuseMaps(false);
    owner().unregisterShuffle(SHUFFLE);
    eventually(
        "its own segments are empty",
        () -> {
          clock.advance(Duration.ofMillis(10));
          return device(owner()).reservedBytes() <= SMALL - 2 * SEGMENT;
        });
    final int mapped = gpu.maps();
    final int maps = write(owner(), SHUFFLE, device(owner()).usedBytes() + 3 * SEGMENT);
    eventually("new ones are mapped ahead", () -> gpu.maps() > mapped);
    check(reader, owner(), maps);
    clock.advance(Duration.ofSeconds(30));
    assertThat(TestNodes.fetchAndCheck(reader, TestNodes.noStaging(), BATCHES, MOST, other))
        .containsOnlyKeys(BlockPath.PEER);
  }

  @Test
  void whatIsRecalledGoesToFilesIfHostMemoryIsFull() throws IOException {
    final StoredBlocks files = new StoredBlocks();
    node(
        "owner",
        linked("owner", 0, SMALL)
            .set("pool.size", 2 * SMALL)
            .set("segment.size", SMALL)
            .coldStorage(files),
        new DeviceOnlyGpu());
    node("lender", 1, LARGE);
    awaitMeeting();
    final int maps = write(owner(), SHUFFLE, 3 * SMALL);
    while (owner().stats().host().usedBytes() < 2 * SMALL - SEGMENT) {
      try (MapOutput writer = owner().newMapOutput(OTHER_SHUFFLE, hosts++, PARTITIONS)) {
        writer.append(TestBlocks.batch(OTHER_SHUFFLE, hosts, 0, PARTITIONS, MOST));
        writer.commit();
      }
    }
    lender().shrinkDevicePool(LARGE, EvictionScope.COLD, LIMIT);
    eventually("all is back", () -> lent(lender()) == 0 && borrowed(owner()) == 0);
    assertThat(owner().stats().evictions().toFiles().outputs()).isPositive();
    assertThat(
            TestNodes.fetchAndCheck(lender(), files, BATCHES, MOST, source(owner(), SHUFFLE, maps)))
        .containsKeys(BlockPath.PEER, BlockPath.STAGED);
  }

  @Test
  void aLenderThatEndsLeavesWhatItHasLent() {
    startTwo();
    final int maps = write(owner(), SHUFFLE, 3 * SMALL);
    end("lender");
    check(owner(), owner(), maps);
    eventually("it moves to host memory", () -> borrowed(owner()) == 0);
    check(owner(), owner(), maps);
    assertThat(Holdings.of(owner()).outputs()).isEqualTo(maps);
  }

  @Test
  void aBorrowerThatEndsLeavesNothing() {
    startTwo();
    write(owner(), SHUFFLE, 3 * SMALL);
    assertThat(lent(lender())).isPositive();
    end("owner");
    eventually("its memory is free", () -> lent(lender()) == 0);
    assertThat(device(lender()).reservedBytes()).isZero();
    write(lender(), SHUFFLE, LARGE - 2 * SEGMENT);
    assertThat(device(lender()).usedBytes()).isGreaterThan(LARGE / 2);
  }

  /** One that only takes: its lender is not held up, and gets all back when it ends. */
  @Test
  void aBorrowerThatIgnoresARecallHoldsNobodyUp() {
    final ShuffleNode lender = node("lender", 1, LARGE);
    try (SocketFolder folder = SocketFolder.open(base.resolve("s"), "app-test", TestNodes.SECRET);
        PeerLink link =
            PeerLink.connect(
                folder.socket(lender.location().socket()),
                "greedy",
                lender.location().socket(),
                TestNodes.SECRET,
                LIMIT)) {
      for (final long bytes : new long[] {1, SEGMENT + 1, Long.MAX_VALUE, 1L << 31, LARGE}) {
        assertThat(link.borrow(bytes, LIMIT)).as("%d bytes", bytes).isNull();
      }
      final List<SegmentHandle> handles = new ArrayList<>();
      for (PeerLink.Loan loan = link.borrow(SEGMENT, LIMIT);
          loan != null;
          loan = link.borrow(SEGMENT, LIMIT)) {
        handles.add(loan.handle());
      }
      assertThat(handles).hasSize((int) (LARGE / 2 / SEGMENT));
      handles.forEach(SegmentHandle::close);
      link.giveBack(1, LIMIT);
      link.giveBack(-1, LIMIT);
      assertThat(lent(lender)).as("ids that are not lent").isEqualTo(LARGE / 2);

      assertThat(lender.shrinkDevicePool(LARGE, EvictionScope.ALL, Duration.ofSeconds(2))).isZero();
      for (int map = 0; map < 200; map++) {
        put(lender, SHUFFLE, map);
      }
      assertThat(device(lender).loans().recalledSegments()).isEqualTo(handles.size());
      assertThat(lent(lender)).isEqualTo(LARGE / 2);
      assertThat(link.borrow(SEGMENT, LIMIT)).as("it pauses").isNull();
    }
    eventually("the end of the connection returns all", () -> lent(lender) == 0);
    check(lender, lender, 200);
  }

  @Test
  void theSecondBorrowerGetsItsShare() {
    startTwo();
    final ShuffleNode second = node("second", 2, SMALL);
    awaitMeeting();
    write(owner(), SHUFFLE, SMALL + LARGE / 2 - 4 * SEGMENT);
    final long first = borrowed(owner());
    int maps = 0;
    while (borrowed(second) < 4 * SEGMENT) {
      maps += put(second, SHUFFLE, maps) ? 1 : 0;
      sleep();
    }
    assertThat(borrowed(owner())).isLessThan(first);
    assertThat(lent(lender())).isLessThanOrEqualTo(LARGE / 2);
    check(lender(), second, maps);
  }

  @Test
  void nobodyBorrowsWhereItIsOffOrMemoryCannotBeMapped() {
    node("owner", 0, SMALL);
    node(
        "lender", linked("lender", 1, LARGE).set("device.pool.borrow", false), new DeviceOnlyGpu());
    awaitMeeting();
    for (int map = 0; map < 100; map++) {
      put(owner(), SHUFFLE, map);
    }
    assertThat(device(owner()).loans().borrowedPeakBytes()).isZero();
    end("lender");
    final DeviceOnlyGpu isolated = new DeviceOnlyGpu();
    isolated.refuseMaps(true);
    node("isolated", linked("isolated", 3, SMALL), isolated);
    node("lender", 2, LARGE);
    awaitMeeting();
    for (int map = 0; map < 100; map++) {
      put(nodes.get("isolated"), SHUFFLE, map);
    }
    assertThat(device(nodes.get("isolated")).loans().borrowedPeakBytes()).isZero();
    eventually("what was granted is back", () -> lent(lender()) == borrowed(owner()));
  }

  @Test
  void aLoanThatCannotBeMappedIsNoReasonNotToReadItsLender() {
    final DeviceOnlyGpu gpu = new DeviceOnlyGpu();
    gpu.refuseLoans(true);
    final ShuffleNode reader = node("reader", linked("reader", 0, SMALL), gpu);
    node("owner", 1, LARGE);
    awaitMeeting();
    for (int map = 0; map < 100; map++) {
      put(reader, OTHER_SHUFFLE, map);
      sleep();
    }
    eventually(
        "what was granted is back",
        () -> device(owner()).returnedBytes() > 0 && lent(owner()) == 0);
    assertThat(device(owner()).returnedBytes()).as("granted").isEqualTo(SEGMENT);
    put(owner(), SHUFFLE, 0);
    check(reader, owner(), 1);
  }

  @Test
  void readersAndWritersGoOnWhileItIsRecalled() throws Exception {
    startTwo();
    final AtomicBoolean over = new AtomicBoolean();
    final ExecutorService threads = Executors.newFixedThreadPool(3);
    try {
      final int maps = write(owner(), SHUFFLE, 3 * SMALL);
      final List<Future<?>> work = new ArrayList<>();
      for (final ShuffleNode reader : List.of(owner(), lender())) {
        work.add(
            threads.submit(
                () -> {
                  while (!over.get()) {
                    check(reader, owner(), maps);
                  }
                }));
      }
      work.add(
          threads.submit(
              () -> {
                while (!over.get()) {
                  for (int map = 0; map < 60; map++) {
                    put(owner(), OTHER_SHUFFLE, map);
                  }
                  TestNodes.fetchAndCheck(
                      lender(),
                      TestNodes.noStaging(),
                      BATCHES,
                      MOST,
                      source(owner(), OTHER_SHUFFLE, 60));
                  owner().unregisterShuffle(OTHER_SHUFFLE);
                }
              }));
      for (int round = 0; round < 5; round++) {
        lender().shrinkDevicePool(2 * SEGMENT, EvictionScope.COLD, Duration.ofSeconds(2));
        TimeUnit.MILLISECONDS.sleep(100);
      }
      over.set(true);
      for (final Future<?> each : work) {
        each.get(60, TimeUnit.SECONDS);
      }
      assertThat(device(lender()).loans().recalledSegments()).isPositive();
      check(lender(), owner(), maps);
    } finally {
      over.set(true);
      threads.shutdownNow();
    }
  }
}
