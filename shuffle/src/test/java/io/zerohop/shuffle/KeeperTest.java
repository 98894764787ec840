package io.zerohop.shuffle;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.zerohop.device.Leaks;
import io.zerohop.device.SegmentHandle;
import io.zerohop.device.TestClock;
import io.zerohop.device.ZerohopException;
import io.zerohop.device.exchange.ExchangeException;
import io.zerohop.device.exchange.PeerLink;
import io.zerohop.device.exchange.SocketFolder;
import io.zerohop.device.posix.Clock;
import io.zerohop.shuffle.block.BlockPath;
import io.zerohop.shuffle.block.BlockSource;
import io.zerohop.shuffle.block.Location;
import io.zerohop.shuffle.fetch.BlockFetchException;
import io.zerohop.shuffle.fetch.Fetch;
import io.zerohop.shuffle.keeper.Keeper;
import io.zerohop.shuffle.keeper.KeeperStats;
import io.zerohop.shuffle.keeper.KeptTransport;
import io.zerohop.shuffle.log.ShuffleCode;
import io.zerohop.shuffle.transport.ControlChannel;
import io.zerohop.shuffle.transport.ControlChannel.ControlService;
import io.zerohop.shuffle.transport.FakeStaging;
import io.zerohop.shuffle.transport.samenode.LeftFolder;
import io.zerohop.shuffle.transport.ucx.LocalChannels;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.time.Duration;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.Function;
import java.util.function.LongSupplier;
import java.util.stream.Collectors;
import java.util.stream.LongStream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** A keeper, and executors in processes of their own that end before it. */
class KeeperTest {
  private static final int MAPS = 10;
  private static final int SHUFFLES = 12;

  /** Many rounds of a keeper's. */
  private static final long PAUSE_MILLIS = 1_000;

  private static final Duration LONG = Duration.ofHours(1);
  private static final Keeper.Limits UNLIMITED =
      new Keeper.Limits(Long.MAX_VALUE, LONG, LONG, LONG);

  @TempDir private java.nio.file.Path temp;
  private java.nio.file.Path base;
  private final Leaks leaks = new Leaks();
  private final TestDriver driver = new TestDriver();
  private final TestClock clock = TestClock.running();
  private ShuffleNode reader;
  private Keeper keeper;
  private LeftFolder files;
  private volatile LongSupplier memory = () -> Long.MAX_VALUE;
  private volatile boolean ending;
  private Thread keeping;

  @BeforeEach
  void start() {
    base = temp.resolve("s");
    reader = TestNodes.start(base, "reader");
  }

  @AfterEach
  void noLeaks() throws InterruptedException {
    endKeeper();
    TestNodes.eventually(
        "nothing is mapped",
        () -> {
          reader.unregisterShuffle(1);
          return Holdings.of(reader).mappedSegments() == 0;
        });
    TestNodes.assertNothingHeld(reader);
    reader.close();
    leaks.check();
    assertThat(base).doesNotExist();
  }

  /**
   * It counts on nothing of a shuffle any more, long after the end of all that had a part of it.
   */
  private void driverDrops(final int shuffleId) {
    clock.advance(Keeper.Driver.PATIENCE);
    driver.useless.add(shuffleId);
  }

  private SocketFolder folder() {
    return ShuffleNode.socketFolder(base, "app-test", TestNodes.SECRET);
  }

  private void startKeeper(final Keeper.Limits limits) {
    startKeeper(limits, null);
  }

  private void startKeeper(
      final Keeper.Limits limits, final Function<ControlService, ControlChannel> channels) {
    keeper =
        Keeper.start(
            folder(),
            TestNodes.SECRET,
            limits,
            driver,
            channels,
            files,
            null,
            "1.2",
            () -> memory.getAsLong(),
            clock);
    ending = false;
    keeping =
        new Thread(
            () -> {
              while (!ending && keeper.round()) {
                Thread.onSpinWait();
              }
            });
    keeping.start();
  }

  private void endKeeper() throws InterruptedException {
    if (keeper != null) {
      ending = true;
      keeping.join();
      keeper.close();
      keeper = null;
    }
  }

  private static BlockSource kept(final BlockSource source) {
    return new BlockSource(
        source.executorId(),
        source.location(),
        source.host(),
        source.address(),
        source.blocks(),
        true);
  }

  private void readAll(final NodeProcess owner, final int shuffleId) {
    readAll(owner, shuffleId, MAPS);
  }

  private void readAll(final NodeProcess owner, final int shuffleId, final int maps) {
    assertThat(
            TestNodes.fetchAndCheck(
                reader,
                TestNodes.noStaging(),
                NodeProcess.BATCHES,
                NodeProcess.MOST,
                kept(owner.source(shuffleId, maps))))
        .containsOnlyKeys(BlockPath.PEER);
  }

  /** The message of a fetch that fails. Nobody answers for the owner. */
  private String failure(final NodeProcess owner, final int shuffleId) {
    final FakeStaging staging = new FakeStaging(NodeProcess.BATCHES, NodeProcess.MOST);
    staging.desert();
    final BlockSource source = kept(owner.source(shuffleId, MAPS));
    try (Fetch fetcher = reader.fetch(List.of(source), staging, TestNodes.quiet(), () -> false)) {
      final Throwable[] thrown = new Throwable[1];
      assertThatThrownBy(fetcher::next)
          .isInstanceOf(BlockFetchException.class)
          .satisfies(e -> thrown[0] = e);
      return String.valueOf(((BlockFetchException) thrown[0]).message().code());
    }
  }

  private static void awaitKept(final NodeProcess owner, final int shuffleId) {
    awaitKept(owner, shuffleId, MAPS);
  }

  private static void awaitKept(final NodeProcess owner, final int shuffleId, final int maps) {
    TestNodes.eventually(
        "all is kept",
        () -> {
          try {
            return owner.ask("kept", shuffleId, maps).equals("" + maps);
          } catch (final IOException e) {
            throw new AssertionError(e);
          }
        });
  }

  private void awaitLeft(final boolean some) {
    TestNodes.eventually("something is left: " + some, () -> keeper.leftBytes() > 0 == some);
  }

  @Test
  void whatAKilledExecutorHasPublishedIsRead() throws Exception {
    startKeeper(UNLIMITED);
    try (NodeProcess owner = new NodeProcess(base, "1")) {
      assertThat(owner.ask("write", 1, MAPS)).isEqualTo("ok");
      awaitKept(owner, 1);
      readAll(owner, 1); // In the owner's memory.
      owner.kill();
      readAll(owner, 1);
    }
  }

  @Test
  void whoAsksAnExecutorThatIsKilledMeanwhileReadsWhatItHasPublished() throws Exception {
    startKeeper(UNLIMITED);
    final ExecutorService threads = Executors.newSingleThreadExecutor();
    try (NodeProcess owner = new NodeProcess(base, "1")) {
      owner.ask("write", 1, 1);
      awaitKept(owner, 1, 1);
      readAll(owner, 1, 1); // Connects.
      for (int shuffle = 2; shuffle < SHUFFLES; shuffle++) { // In segments that are not mapped yet.
        owner.ask("write", shuffle, MAPS);
        awaitKept(owner, shuffle, MAPS);
      }
      owner.pause();
      final Future<?> read = threads.submit(() -> readAll(owner, SHUFFLES - 1));
      Thread.sleep(300);
      assertThat(read.isDone()).isFalse();
      owner.kill();
      read.get(1, TimeUnit.MINUTES);
    } finally {
      threads.shutdownNow();
    }
  }

  @Test
  void whatAnExecutorHasPublishedThatEndsInGoodOrderIsRead() throws Exception {
    startKeeper(UNLIMITED);
    final NodeProcess owner = new NodeProcess(base, "1");
    assertThat(owner.ask("write", 1, MAPS)).isEqualTo("ok");
    awaitKept(owner, 1);
    owner.close();
    readAll(owner, 1);
  }

  @Test
  void executorsOfOtherNodesReadWhatIsLeftByAskingTheKeeper() throws Exception {
    final LocalChannels channels = new LocalChannels();
    startKeeper(UNLIMITED, channels::open);
    final FakeStaging nobody = new FakeStaging(NodeProcess.BATCHES, NodeProcess.MOST);
    nobody.desert();
    try (NodeProcess owner = new NodeProcess(base, "1");
        ShuffleNode elsewhere =
            ShuffleNode.start(
                TestNodes.config(temp.resolve("other"), "far").set("node.id", "other"));
        KeptTransport transport =
            new KeptTransport(
                nobody,
                source -> false,
                () -> channels.open(null),
                source -> {},
                LONG,
                Clock.system())) {
      owner.ask("write", 1, MAPS);
      awaitKept(owner, 1);
      final int port = Integer.parseInt(owner.ask("keeperPort", 1));
      assertThat(port).isPositive();
      owner.kill();
      final BlockSource near = owner.source(1, MAPS);
      final BlockSource source =
          new BlockSource(
              near.executorId(),
              near.knownLocation().withKeeper(port),
              "host",
              near.address(),
              near.blocks(),
              true);
      assertThat(
              TestNodes.fetchAndCheck(
                  elsewhere, transport, NodeProcess.BATCHES, NodeProcess.MOST, source))
          .containsOnlyKeys(BlockPath.STAGED);
      readAll(owner, 1);
      TestNodes.eventually(
          "it is counted", () -> reader.keeperStats(TestNodes.SECRET).adoptedOutputs() > 0);
      final KeeperStats stats = reader.keeperStats(TestNodes.SECRET);
      assertThat(stats.adoptedOutputs()).isEqualTo(MAPS);
      assertThat(stats.leftOutputs()).isEqualTo(MAPS);
      assertThat(stats.leftBytes()).isPositive().isEqualTo(stats.heldBytes());
      assertThat(stats.limitBytes()).isEqualTo(Long.MAX_VALUE);
      assertThat(stats.startedMillis()).isBetween(1L, System.currentTimeMillis());
      assertThat(stats.release()).isEqualTo("1.2");
      driverDrops(1);
      awaitLeft(false);
      TestNodes.eventually(
          "it is counted", () -> reader.keeperStats(TestNodes.SECRET).droppedOutputs() == MAPS);
      assertThat(reader.keeperStats(TestNodes.SECRET))
          .satisfies(
              last -> {
                assertThat(last.leftOutputs()).isZero();
                assertThat(last.heldBytes()).isZero();
                assertThat(last.sentBlocks()).isPositive();
                assertThat(last.sentBytes()).isPositive();
                assertThat(last.sharedSegments()).isPositive();
                assertThat(last.sharedBytes()).isGreaterThan(last.sharedSegments());
                assertThat(last.removedOutputs()).isZero();
              });
    }
  }

  @Test
  void severalReadersAndSeveralOwners() throws Exception {
    startKeeper(UNLIMITED);
    try (NodeProcess one = new NodeProcess(base, "1");
        NodeProcess two = new NodeProcess(base, "2");
        NodeProcess three = new NodeProcess(base, "3")) {
      one.ask("write", 1, MAPS);
      two.ask("write", 2, MAPS);
      awaitKept(one, 1);
      awaitKept(two, 2);
      one.kill();
      two.kill();
      readAll(one, 1);
      readAll(two, 2);
      three.ask("write", 3, MAPS);
      awaitKept(three, 3);
      three.kill();
      readAll(three, 3);
      readAll(one, 1);
    }
  }

  @Test
  void withoutAKeeperNothingIsKept() throws Exception {
    try (NodeProcess owner = new NodeProcess(base, "1")) {
      owner.ask("write", 1, MAPS);
      assertThat(owner.ask("kept", 1, MAPS)).isEqualTo("0");
      owner.kill();
      assertThat(failure(owner, 1)).isEqualTo(ShuffleCode.PEER_DEAD.label());
    }
  }

  @Test
  void whatWasNotReadyIsLostAndNotTold() throws Exception {
    startKeeper(UNLIMITED);
    try (NodeProcess owner = new NodeProcess(base, NodeProcess.WITH_DEVICE)) {
      assertThat(owner.ask("write", 2, MAPS)).isEqualTo("ok");
      awaitKept(owner, 2);
      assertThat(owner.ask("pend", 1)).isEqualTo("1");
      TestNodes.eventually("it is kept", () -> isKept(owner));
      owner.kill();
      TestNodes.eventually(
          "the driver knows", () -> driver.left(NodeProcess.WITH_DEVICE).containsKey(2));
      assertThat(driver.left(NodeProcess.WITH_DEVICE)).containsOnlyKeys(2);
      assertThat(failure(owner, 1)).isEqualTo(ShuffleCode.LEFT_NOT_KEPT.label());
    }
  }

  private static boolean isKept(final NodeProcess owner) {
    try {
      return owner.ask("kept", 1, 1).equals("1");
    } catch (final IOException e) {
      throw new AssertionError(e);
    }
  }

  @Test
  void anOutputThatIsNotThereIsLost() throws Exception {
    startKeeper(UNLIMITED);
    try (NodeProcess owner = new NodeProcess(base, "1")) {
      owner.ask("write", 1, MAPS);
      awaitKept(owner, 1);
      owner.kill();
      assertThat(failure(owner, 7)).isEqualTo(ShuffleCode.LEFT_NOT_KEPT.label());
    }
  }

  @Test
  void theDriverHearsWhatIsLeftAndWhatItHasNoUseForGoes() throws Exception {
    startKeeper(UNLIMITED);
    try (NodeProcess owner = new NodeProcess(base, "1")) {
      owner.ask("write", 1, MAPS);
      owner.ask("write", 2, MAPS);
      awaitKept(owner, 1);
      awaitKept(owner, 2);
      owner.kill();
      TestNodes.eventually("the driver knows", () -> driver.left("1").keySet().size() == 2);
      final Set<Long> maps = LongStream.range(0, MAPS).boxed().collect(Collectors.toSet());
      assertThat(driver.left("1")).isEqualTo(Map.of(1, maps, 2, maps));
      driverDrops(2);
      TestNodes.eventually("it is dropped", () -> !driver.left("1").containsKey(2));
      assertThat(failure(owner, 2)).isEqualTo(ShuffleCode.LEFT_NOT_KEPT.label());
      readAll(owner, 1);
      driverDrops(1);
      awaitLeft(false);
    }
  }

  @Test
  void whatIsTooOldGoesOnceTheDriverKnows() throws Exception {
    startKeeper(new Keeper.Limits(Long.MAX_VALUE, Duration.ofMillis(1), LONG, LONG));
    driver.isThere.set(false);
    try (NodeProcess owner = new NodeProcess(base, "1")) {
      owner.ask("write", 1, MAPS);
      awaitKept(owner, 1);
      owner.kill();
      awaitLeft(true);
      readAll(owner, 1);
      driver.isThere.set(true);
      awaitLeft(false);
      assertThat(driver.left("1")).isEmpty();
    }
  }

  @Test
  void withTheKeeperGoesWhatItHeld() throws Exception {
    startKeeper(UNLIMITED);
    try (NodeProcess owner = new NodeProcess(base, "1");
        NodeProcess other = new NodeProcess(base, "2")) {
      owner.ask("write", 1, MAPS);
      other.ask("write", 2, MAPS);
      awaitKept(owner, 1);
      awaitKept(other, 2);
      owner.kill();
      readAll(owner, 1);
      endKeeper();
      TestNodes.eventually("it is gone", () -> other(other).equals("0"));
      assertThat(failure(owner, 1)).isEqualTo(ShuffleCode.PEER_ENDED.label());
      readAll(other, 2); // It lives.
      startKeeper(UNLIMITED);
      awaitKept(other, 2);
      other.kill();
      readAll(other, 2);
    }
  }

  private static String other(final NodeProcess process) {
    try {
      return process.ask("kept", 2, MAPS);
    } catch (final IOException e) {
      throw new AssertionError(e);
    }
  }

  @Test
  void whatIsBeyondTheLimitIsNotKept() throws Exception {
    startKeeper(new Keeper.Limits(3L << 20, LONG, LONG, LONG));
    try (NodeProcess one = new NodeProcess(base, "1");
        NodeProcess two = new NodeProcess(base, "2")) {
      one.ask("write", 1, MAPS);
      awaitKept(one, 1);
      two.ask("write", 2, MAPS);
      assertThat(two.ask("kept", 2, MAPS)).isEqualTo("0");
      TestNodes.eventually(
          "it is counted", () -> reader.keeperStats(TestNodes.SECRET).refusedSegments() > 0);
      one.kill();
      readAll(one, 1);
      assertThat(two.ask("kept", 2, MAPS)).isEqualTo("0");
      driverDrops(1);
      awaitKept(two, 2); // There is room again.
    }
  }

  @Test
  void whereMemoryIsShortWhatEndedFirstGoesOnceTheDriverKnows() throws Exception {
    startKeeper(UNLIMITED);
    try (NodeProcess one = new NodeProcess(base, "1");
        NodeProcess two = new NodeProcess(base, "2")) {
      one.ask("write", 1, MAPS);
      awaitKept(one, 1);
      two.ask("write", 2, MAPS);
      awaitKept(two, 2);
      two.kill();
      TestNodes.eventually("the driver knows", () -> driver.left("2").containsKey(2));
      one.kill();
      TestNodes.eventually("the driver knows", () -> driver.left("1").containsKey(1));
      final AtomicInteger looks = new AtomicInteger();
      memory = () -> looks.getAndIncrement() == 0 ? 0 : Long.MAX_VALUE;
      TestNodes.eventually(
          "it is removed", () -> reader.keeperStats(TestNodes.SECRET).removedOutputs() >= MAPS);
      final KeeperStats stats = reader.keeperStats(TestNodes.SECRET);
      assertThat(stats.removedOutputs()).isEqualTo(MAPS);
      assertThat(stats.droppedOutputs()).isEqualTo(MAPS);
      assertThat(stats.leftOutputs()).isEqualTo(MAPS);
      assertThat(driver.left("2")).isEmpty();
      assertThat(failure(two, 2)).isEqualTo(ShuffleCode.PEER_DEAD.label());
      TestNodes.eventually("it looks again", () -> looks.get() > 1);
      readAll(one, 1);
    }
  }

  /** One that starts at the same time may take the first one's new socket for an old one. */
  @Test
  void thereIsOneKeeperAlsoWhereItsSocketIsRemoved() throws Exception {
    try (SocketFolder there = folder();
        Keeper first = startOne()) {
      assertThat(first).isNotNull();
      assertThat(startOne()).isNull();
      Files.delete(there.socket(Location.KEEPER));
      assertThat(startOne()).isNull();
    }
    final Keeper next = startOne();
    assertThat(reader.keeperRuns()).isTrue();
    next.close();
  }

  private Keeper startOne() {
    try {
      return Keeper.start(
          folder(),
          TestNodes.SECRET,
          UNLIMITED,
          driver,
          null,
          null,
          null,
          "1.2",
          () -> Long.MAX_VALUE,
          Clock.system());
    } catch (final ZerohopException e) {
      assertThat(e.category()).isEqualTo(ZerohopException.Category.FALLBACK);
      return null;
    }
  }

  @Test
  void whoDoesNotKnowTheSecretGetsNothing() throws Exception {
    startKeeper(UNLIMITED);
    try (NodeProcess owner = new NodeProcess(base, "1")) {
      owner.ask("write", 1, MAPS);
      awaitKept(owner, 1);
      owner.kill();
      awaitLeft(true);
      final String left = Location.leftSocket(owner.location().socket());
      try (SocketFolder there = folder()) {
        for (final String name : List.of(left, Location.KEEPER)) {
          assertThatThrownBy(
                  () ->
                      PeerLink.connect(
                          there.socket(name),
                          "stranger",
                          name,
                          "a secret of another application".getBytes(StandardCharsets.UTF_8),
                          Duration.ofSeconds(10)))
              .isInstanceOfSatisfying(
                  ExchangeException.class,
                  e -> assertThat(e.reason()).isEqualTo(ExchangeException.Reason.AUTHENTICATION));
        }
      }
      readAll(owner, 1);
    }
  }

  /** Who knows the secret may read. To hold memory beyond the executor's end takes more. */
  @Test
  void onlyAKeeperKeepsAndOnlyWhereTheKeyIsSet() {
    try (ShuffleNode keeps =
            ShuffleNode.start(TestNodes.config(base, "keeps").set("keeper", true));
        SocketFolder there = folder()) {
      assertThat(isKeptBy(there, keeps, Location.KEEPER)).isTrue();
      assertThat(isKeptBy(there, keeps, "executor")).isFalse();
      assertThat(isKeptBy(there, reader, Location.KEEPER)).isFalse();
      assertThat(reader.hasKeeper()).isFalse();
    }
  }

  private static boolean isKeptBy(
      final SocketFolder there, final ShuffleNode owner, final String name) {
    final String socket = owner.location().socket();
    TestBlocks.put(owner, 1, 0, 1, 60, 500);
    final long segment = owner.parts.memory.index().segmentsOf(1, 0)[0];
    try (PeerLink link =
            PeerLink.connect(
                there.socket(socket), name, socket, TestNodes.SECRET, Duration.ofSeconds(10));
        SegmentHandle handle = link.keep(segment, Duration.ofSeconds(10))) {
      return handle != null;
    } finally {
      owner.unregisterShuffle(1);
    }
  }

  @Test
  void anExecutorThatOnlyPausesIsNotTakenOver() throws Exception {
    startKeeper(UNLIMITED);
    try (NodeProcess owner = new NodeProcess(base, "1")) {
      owner.ask("write", 1, MAPS);
      awaitKept(owner, 1);
      owner.pause();
      Thread.sleep(PAUSE_MILLIS);
      assertThat(keeper.leftBytes()).isZero();
      owner.resume();
      readAll(owner, 1);
      assertThat(keeper.leftBytes()).isZero();
    }
  }

  @Test
  void itEndsWithTheDriver() throws Exception {
    reader.close();
    try (NodeProcess owner = new NodeProcess(base, "1")) {
      startKeeper(new Keeper.Limits(Long.MAX_VALUE, LONG, LONG, Duration.ofSeconds(1)));
      owner.ask("write", 1, MAPS);
      awaitKept(owner, 1);
      owner.kill();
      awaitLeft(true);
      Thread.sleep(1_500);
      assertThat(keeping.isAlive()).isTrue();
      driver.isThere.set(false);
      keeping.join(30_000);
      assertThat(keeping.isAlive()).isFalse();
    }
  }

  /** Counts on all outputs that it does not call useless, as long as it is there. */
  private static final class TestDriver implements Keeper.Driver {
    private final AtomicBoolean isThere = new AtomicBoolean(true);
    private final Set<Integer> useless = ConcurrentHashMap.newKeySet();
    private final Map<String, Map<Integer, Set<Long>>> told = new ConcurrentHashMap<>();

    private Map<Integer, Set<Long>> left(final String executorId) {
      return told.getOrDefault(executorId, Map.of());
    }

    @Override
    public Set<Integer> report(final String executorId, final Map<Integer, Set<Long>> outputs)
        throws IOException {
      if (!isThere.get()) {
        throw new IOException("nobody answers");
      }
      if (outputs != null) {
        told.put(executorId, outputs);
      }
      final Set<Integer> needed = new HashSet<>(left(executorId).keySet());
      needed.removeAll(useless);
      return needed;
    }
  }
}
