package io.zerohop.shuffle;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.zerohop.device.Leaks;
import io.zerohop.device.SegmentHandle;
import io.zerohop.device.TestClock;
import io.zerohop.device.exchange.PeerLink;
import io.zerohop.device.host.AvailableMemory;
import io.zerohop.device.host.HostDevice;
import io.zerohop.device.posix.Clock;
import io.zerohop.shuffle.block.BlockPath;
import io.zerohop.shuffle.block.BlockSource;
import io.zerohop.shuffle.block.Location;
import io.zerohop.shuffle.fetch.BlockFetchException;
import io.zerohop.shuffle.keeper.Keeper;
import io.zerohop.shuffle.keeper.KeeperStats;
import io.zerohop.shuffle.keeper.KeptTransport;
import io.zerohop.shuffle.keeper.SegmentCopier;
import io.zerohop.shuffle.transport.FakeStaging;
import io.zerohop.shuffle.transport.samenode.LeftFolder;
import io.zerohop.shuffle.transport.ucx.LocalChannels;
import java.io.IOException;
import java.nio.file.Files;
import java.time.Duration;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.LongSupplier;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** What executors have left in GPU memory, for who cannot read it there. */
@Timeout(120)
class KeeperGpuTest {
  private static final int MAPS = 4;

  /** More than a segment has room for. */
  private static final int MANY_MAPS = 14;

  private static final long POOL = 4 << 20;
  private static final Duration LONG = Duration.ofHours(1);
  private static final Duration SOON = Duration.ofSeconds(5);
  private static final Keeper.Limits UNLIMITED =
      new Keeper.Limits(Long.MAX_VALUE, LONG, LONG, LONG);

  @TempDir private java.nio.file.Path temp;
  private java.nio.file.Path base;
  private final Leaks leaks = new Leaks();
  private final LocalChannels channels = new LocalChannels();
  private final TestClock clock = TestClock.running();
  private final AtomicInteger copies = new AtomicInteger();
  private final Map<String, Map<Integer, Set<Long>>> told = new ConcurrentHashMap<>();
  private final Set<Integer> useless = ConcurrentHashMap.newKeySet();
  private volatile IOException copierFails;
  private volatile LongSupplier available = () -> Long.MAX_VALUE;
  private ShuffleNode elsewhere;

  /** Of the keeper's node, for what the keeper says; reads nothing. */
  private ShuffleNode asking;

  private KeptTransport transport;
  private Keeper keeper;
  private volatile boolean ending;
  private Thread keeping;

  @BeforeEach
  void start() {
    base = temp.resolve("s");
    asking = TestNodes.start(base, "asking");
    elsewhere =
        ShuffleNode.start(
            TestNodes.config(temp.resolve("other"), "elsewhere").set("node.id", "other"));
    final FakeStaging nobody =
        new FakeStaging(block -> new byte[] {42}) {
          @Override
          public boolean answers(final BlockSource source, final Duration limit) {
            return false;
          }
        };
    transport =
        new KeptTransport(
            nobody, source -> false, () -> channels.open(null), source -> {}, LONG, Clock.system());
  }

  @AfterEach
  void noLeaks() throws InterruptedException {
    ending = true;
    keeping.join();
    keeper.close();
    transport.close();
    elsewhere.close();
    asking.close();
    leaks.check();
  }

  private void startKeeper(
      final Keeper.Limits limits, final Keeper.Copier copier, final LeftFolder files) {
    keeper =
        Keeper.start(
            ShuffleNode.socketFolder(base, "app-test", TestNodes.SECRET),
            TestNodes.SECRET,
            limits,
            (executor, outputs) -> {
              if (outputs != null) {
                told.put(executor, outputs);
              }
              final Set<Integer> needed =
                  new HashSet<>(told.getOrDefault(executor, Map.of()).keySet());
              needed.removeAll(useless);
              return needed;
            },
            channels::open,
            files,
            copier,
            "1.2",
            () -> available.getAsLong(),
            clock);
    keeping =
        new Thread(
            () -> {
              while (!ending && keeper.round()) {
                Thread.onSpinWait();
              }
            });
    keeping.start();
  }

  /** As the process does, with a GPU for tests. */
  private void copy(final SegmentCopier.Order order, final Runnable beside) throws IOException {
    copies.incrementAndGet();
    if (copierFails != null) {
      throw copierFails;
    }
    beside.run();
    try (HostDevice host = new HostDevice();
        DeviceOnlyGpu gpu = new DeviceOnlyGpu()) {
      SegmentCopier.copy(order, gpu, host, TestNodes.SECRET, Duration.ofMinutes(1));
    }
  }

  private LeftFolder files() throws IOException {
    return LeftFolder.open(
        List.of(Files.createDirectory(temp.resolve("files"))), 1 << 30, 1 << 30, clock);
  }

  private NodeProcess owner(final String executorId) throws IOException {
    return NodeProcess.linked(base, executorId, 0, POOL);
  }

  /** A source as it is published, once the keeper holds all of it. */
  private static BlockSource published(final NodeProcess owner, final int shuffleId)
      throws IOException {
    return published(owner, shuffleId, MAPS);
  }

  private static BlockSource published(final NodeProcess owner, final int shuffleId, final int maps)
      throws IOException {
    owner.ask("write", shuffleId, maps);
    TestNodes.eventually(
        "all is kept",
        () -> {
          try {
            return owner.ask("kept", shuffleId, maps).equals("" + maps);
          } catch (final IOException e) {
            throw new AssertionError(e);
          }
        });
    final int port = Integer.parseInt(owner.ask("keeperPort", shuffleId));
    final BlockSource near = owner.source(shuffleId, maps);
    return new BlockSource(
        near.executorId(),
        near.knownLocation().withKeeper(port),
        "host",
        near.address(),
        near.blocks(),
        true);
  }

  private Map<BlockPath, Integer> readAll(final ShuffleNode node, final BlockSource source) {
    return TestNodes.fetchAndCheck(node, transport, NodeProcess.BATCHES, NodeProcess.MOST, source);
  }

  private void assertLost(final BlockSource source) {
    assertThatThrownBy(() -> readAll(elsewhere, source)).isInstanceOf(BlockFetchException.class);
  }

  @Test
  void executorsOfOtherNodesReadWhatIsCopiedForThem() throws Exception {
    startKeeper(UNLIMITED, (order, beside, limit, cancelled) -> copy(order, beside), null);
    try (NodeProcess owner = owner("1")) {
      final BlockSource one = published(owner, 1);
      final BlockSource two = published(owner, 2);
      assertThat(one.knownLocation().keeperPort()).isPositive();
      owner.kill();
      assertThat(readAll(elsewhere, one)).containsOnlyKeys(BlockPath.STAGED);
      assertThat(readAll(elsewhere, two)).containsOnlyKeys(BlockPath.STAGED);
      assertThat(copies).as("all that an executor has left is copied at once").hasValue(1);
    }
  }

  @Test
  void executorsOfTheNodeThatCannotMapItReadWhatIsCopied() throws Exception {
    startKeeper(UNLIMITED, (order, beside, limit, cancelled) -> copy(order, beside), null);
    try (NodeProcess owner = owner("1");
        ShuffleNode withoutGpu = TestNodes.start(base, "reader")) {
      final BlockSource source = published(owner, 1);
      owner.kill();
      assertThat(readAll(withoutGpu, source)).containsOnlyKeys(BlockPath.STAGED);
      withoutGpu.unregisterShuffle(1);
    }
  }

  @Test
  void nothingIsCopiedThatNobodyWantsElsewhere() throws Exception {
    startKeeper(UNLIMITED, (order, beside, limit, cancelled) -> copy(order, beside), files());
    try (NodeProcess owner = owner("1");
        ShuffleNode withGpu =
            ShuffleNode.start(TestNodes.linked(base, "reader", 1, POOL), new DeviceOnlyGpu())) {
      final BlockSource source = published(owner, 1);
      owner.kill();
      TestNodes.eventually("it is left", () -> told.containsKey("1"));
      assertThat(readAll(withGpu, source)).containsOnlyKeys(BlockPath.PEER);
      withGpu.unregisterShuffle(1);
      assertThat(copies).hasValue(0);
    }
  }

  @Test
  void withoutACopierOtherNodesAreNotPromisedWhatLiesOnTheGpu() throws Exception {
    startKeeper(UNLIMITED, null, null);
    try (NodeProcess owner = owner("1")) {
      assertThat(published(owner, 1).knownLocation().keeperPort()).isZero();
    }
  }

  @Test
  void whatCannotBeCopiedIsComputedAgain() throws Exception {
    copierFails = new IOException("the GPU is full");
    startKeeper(UNLIMITED, (order, beside, limit, cancelled) -> copy(order, beside), null);
    try (NodeProcess owner = owner("1")) {
      final BlockSource source = published(owner, 1);
      owner.kill();
      assertLost(source);
      TestNodes.eventually(
          "the driver hears that all of it has gone", () -> Map.of().equals(told.get("1")));
      assertLost(source);
      assertThat(copies).hasValue(1);
    }
  }

  @Test
  void whatHasNoRoomOnTheHostIsNotCopied() throws Exception {
    final long total = Math.min(AvailableMemory.machineTotalBytes(), AvailableMemory.limitBytes());
    available = () -> total / 20 + 1; // So little that nothing may be copied, and not short.
    startKeeper(UNLIMITED, (order, beside, limit, cancelled) -> copy(order, beside), null);
    try (NodeProcess owner = owner("1")) {
      final BlockSource source = published(owner, 1);
      owner.kill();
      assertLost(source);
      assertThat(copies).hasValue(0);
    }
  }

  @Test
  void ofOneGpuWhatTheFirstExecutorHasLeftGoesToFiles() throws Exception {
    startKeeper(UNLIMITED, (order, beside, limit, cancelled) -> copy(order, beside), files());
    try (NodeProcess one = owner("1");
        NodeProcess two = owner("2")) {
      final BlockSource first = published(one, 1);
      final BlockSource second = published(two, 2);
      one.kill();
      TestNodes.eventually("the first has ended", () -> told.containsKey("1"));
      two.kill();
      TestNodes.eventually(
          "it is in files, and its memory has gone",
          () -> stats().fileOutputs() == MAPS && told.containsKey("2"));
      assertThat(readAll(elsewhere, first)).containsOnlyKeys(BlockPath.STAGED);
      assertThat(copies).hasValue(1);
      assertThat(readAll(elsewhere, second)).containsOnlyKeys(BlockPath.STAGED);
      assertThat(stats().removedOutputs()).isZero();
    }
  }

  /** What is dropped while copies are made does not fail the others. */
  @Test
  void whatIsDroppedMeanwhileIsLeftOut() throws Exception {
    final AtomicInteger gone = new AtomicInteger();
    startKeeper(
        UNLIMITED,
        (order, beside, limit, cancelled) -> {
          clock.advance(Keeper.Driver.PATIENCE);
          useless.add(1);
          TestNodes.eventually("shuffle 1 is dropped", () -> isDropped(1));
          gone.set(order.segments().size() - there(order));
          copy(order, beside);
        },
        null);
    try (NodeProcess owner = owner("1")) {
      final BlockSource one = published(owner, 1, MANY_MAPS);
      final BlockSource two = published(owner, 2);
      owner.kill();
      assertThat(readAll(elsewhere, two)).containsOnlyKeys(BlockPath.STAGED);
      assertLost(one);
      assertThat(gone).as("segments in which only shuffle 1 lay").hasPositiveValue();
    }
  }

  private static int there(final SegmentCopier.Order order) {
    try (PeerLink link =
        PeerLink.connect(order.socket(), Location.COPIER, order.name(), TestNodes.SECRET, SOON)) {
      int there = 0;
      for (final long id : order.segments()) {
        try (SegmentHandle handle = link.fetch(id, SOON)) {
          there += handle == null ? 0 : 1;
        }
      }
      return there;
    }
  }

  private boolean isDropped(final int shuffleId) {
    clock.advance(Duration.ofSeconds(1));
    return useless.contains(shuffleId) && stats().leftOutputs() == MAPS;
  }

  /** A process that copies is no reader, so it does not keep from files what nobody reads. */
  @Test
  void whatNobodyReadsGoesFromTheGpuToFiles() throws Exception {
    final Duration unread = Duration.ofMinutes(10);
    startKeeper(
        new Keeper.Limits(Long.MAX_VALUE, Duration.ofDays(3650), unread, LONG),
        (order, beside, limit, cancelled) -> copy(order, beside),
        files());
    try (NodeProcess owner = owner("1")) {
      final BlockSource source = published(owner, 1);
      owner.kill();
      TestNodes.eventually("it is left", () -> told.containsKey("1"));
      TestNodes.eventually(
          "it is copied",
          () -> {
            clock.advance(unread);
            return copies.get() > 0;
          });
      TestNodes.eventually("it is in files", () -> stats().fileOutputs() == MAPS);
      TestNodes.eventually("its memory has gone", () -> stats().leftBytes() == 0);
      assertThat(readAll(elsewhere, source)).containsOnlyKeys(BlockPath.STAGED);
    }
  }

  @Test
  void copiesGoFirstWhereMemoryIsShort() throws Exception {
    startKeeper(UNLIMITED, (order, beside, limit, cancelled) -> copy(order, beside), null);
    try (NodeProcess owner = owner("1")) {
      final BlockSource source = published(owner, 1);
      owner.kill();
      TestNodes.eventually("it is left", () -> stats().leftBytes() > 0);
      final long without = stats().leftBytes();
      assertThat(readAll(elsewhere, source)).containsOnlyKeys(BlockPath.STAGED);
      TestNodes.eventually("copies are counted", () -> stats().leftBytes() > without);
      available = () -> keeper.leftBytes() > without ? 0 : Long.MAX_VALUE;
      TestNodes.eventually("copies are gone", () -> stats().leftBytes() == without);
      assertThat(readAll(elsewhere, source)).containsOnlyKeys(BlockPath.STAGED);
      assertThat(copies).hasValue(2);
    }
  }

  private KeeperStats stats() {
    return asking.keeperStats(TestNodes.SECRET);
  }

  /** Only memory that takes a copy is given for writing, and only until the copy is complete. */
  @Test
  void nobodyGetsACopyToWriteTo() throws Exception {
    final List<SegmentHandle> given = new CopyOnWriteArrayList<>();
    final AtomicInteger asked = new AtomicInteger();
    startKeeper(
        UNLIMITED,
        (order, beside, limit, cancelled) -> {
          asked.addAndGet(ask(order, "reader", given));
          copy(order, beside);
          asked.addAndGet(ask(order, Location.COPIER, given));
        },
        null);
    try (NodeProcess owner = owner("1")) {
      final BlockSource source = published(owner, 1);
      owner.kill();
      assertThat(readAll(elsewhere, source)).containsOnlyKeys(BlockPath.STAGED);
      TestNodes.eventually("both have asked", () -> asked.get() == 2);
      assertThat(given).isEmpty();
    } finally {
      given.forEach(SegmentHandle::close);
    }
  }

  private static int ask(
      final SegmentCopier.Order order, final String name, final List<SegmentHandle> given) {
    try (PeerLink link =
        PeerLink.connect(order.socket(), name, order.name(), TestNodes.SECRET, SOON)) {
      final SegmentHandle handle = link.keep(order.segments().get(0), SOON);
      if (handle != null) {
        given.add(handle);
      }
      return 1;
    }
  }
}
