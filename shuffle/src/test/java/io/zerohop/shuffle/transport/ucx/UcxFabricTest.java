package io.zerohop.shuffle.transport.ucx;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.zerohop.device.Leaks;
import io.zerohop.device.TestClock;
import io.zerohop.device.ZerohopException;
import io.zerohop.device.ZerohopException.Category;
import io.zerohop.shuffle.DeviceOnlyGpu;
import io.zerohop.shuffle.FakeFabric;
import io.zerohop.shuffle.GpuBlocks;
import io.zerohop.shuffle.ShuffleNode;
import io.zerohop.shuffle.TestNodes;
import io.zerohop.shuffle.block.BlockPath;
import io.zerohop.shuffle.block.BlockSource;
import io.zerohop.shuffle.block.ReadSide;
import io.zerohop.shuffle.fetch.BlockFetchException;
import io.zerohop.shuffle.fetch.Fetch;
import io.zerohop.shuffle.fetch.FetchedBlock;
import io.zerohop.shuffle.transport.FakeStaging;
import io.zerohop.shuffle.transport.Transport.OwnerGoneException;
import io.zerohop.shuffle.transport.remote.Wire;
import io.zerohop.shuffle.transport.ucx.memory.GetQuestions;
import java.io.ByteArrayOutputStream;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.EnumMap;
import java.util.EnumSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.stream.IntStream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** Two nodes whose GPUs are in one NVLink fabric, or seem to be; a stand-in is their driver. */
@Timeout(120)
class UcxFabricTest {
  private static final int MAPS = 8;
  private static final int BATCHES = 2;
  private static final long POOL = 4 << 20;
  private static final long SEGMENT = 128 << 10;
  private static final String CLIQUE = "0123456789abcdef0123456789abcdef/7";
  private static final String OTHER = "0123456789abcdef0123456789abcdef/8";

  @TempDir private java.nio.file.Path base;
  private final Leaks leaks = new Leaks();
  private final FakeUcx ucx = new FakeUcx();
  private final LocalChannels channels = new LocalChannels();
  private final TestClock clock = TestClock.running();
  private final FakeFabric fabric = new FakeFabric(CLIQUE);
  private final DeviceOnlyGpu ownersDevice = new DeviceOnlyGpu(fabric);
  private DeviceOnlyGpu readersDevice = new DeviceOnlyGpu(fabric);
  private final AtomicInteger handles = new AtomicInteger();
  private ShuffleNode owner;
  private ShuffleNode reader;
  private GpuBlocks made;
  private GpuBlocks readersBlocks;

  private void start(final Set<BlockPath> readersPaths) {
    owner = ShuffleNode.start(config("1", EnumSet.allOf(BlockPath.class)), ownersDevice);
    reader = ShuffleNode.start(config("2", readersPaths), readersDevice);
    made = new GpuBlocks(ownersDevice);
    readersBlocks = new GpuBlocks(readersDevice);
    channels.onQuestion =
        question -> handles.addAndGet(question.get() == GetQuestions.HANDLES ? 1 : 0);
  }

  private void start() {
    start(EnumSet.allOf(BlockPath.class));
  }

  private ShuffleNode.Setup config(final String executor, final Set<BlockPath> paths) {
    return TestNodes.config(base.resolve("s"), executor)
        .set("node.id", "node-" + executor)
        .ucx(
            onStart -> new GpuUcx(ucx.engine(), new AtomicInteger(), new AtomicInteger()),
            channels::open)
        .set("internal.ucx.emulatedGets", true)
        .set("paths", paths)
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
    assertThat(fabric.mappings()).isZero();
    ucx.close();
    leaks.check();
  }

  /** Reads everything, as the GPU does, and checks it; blocks by path. */
  private Map<BlockPath, Integer> read(final BlockSource source) {
    final Map<BlockPath, Integer> paths = new EnumMap<>(BlockPath.class);
    readersBlocks.readAll(
        reader, source, BATCHES, block -> paths.merge(block.path(), 1, Integer::sum));
    return paths;
  }

  /** The same, where blocks come by path peer unless they have nothing in GPU memory. */
  private void readByPeer(final BlockSource source) {
    final int onDevice =
        readersBlocks.readAll(
            reader,
            source,
            BATCHES,
            block ->
                assertThat(block.path())
                    .isEqualTo(onDevice(block) ? BlockPath.PEER : BlockPath.UCX));
    assertThat(onDevice).isGreaterThan(source.blocks().size());
  }

  private static boolean onDevice(final FetchedBlock block) {
    return IntStream.range(0, block.extentCount()).anyMatch(block::extentOnDevice);
  }

  private BlockSource write() {
    return made.write(owner, "1", MAPS, BATCHES);
  }

  /** Does something before one copy, once. */
  private void beforeOneCopy(final Runnable action) {
    final AtomicBoolean done = new AtomicBoolean();
    fabric.beforeCopy =
        () -> {
          if (done.compareAndSet(false, true)) {
            action.run();
          }
        };
  }

  @Test
  void nodesOfOneCliqueReadByPeer() {
    start();
    final BlockSource source = write();
    assertThat(source.location().clique()).isEqualTo(CLIQUE);
    readByPeer(source);
    assertThat(fabric.copies).hasPositiveValue();
    final int asked = handles.get();
    assertThat(asked).isPositive();
    read(source);
    assertThat(handles).as("each segment is mapped once").hasValue(asked);
  }

  @Test
  void anImportThatIsRefusedIsSaidOnceAndBlocksComeByUcx() {
    start();
    fabric.refusesImports = true;
    final BlockSource source = write();
    final String log = loggedWhile(() -> fallsBack(source));
    assertThat(log.lines().filter(line -> line.contains("cannot be read over the NVLink")))
        .singleElement()
        .asString()
        .contains("/dev/nvidia-caps-imex-channels/channel0", "nvidia-imex", "(800)")
        .contains("spark.zerohop.fabric.enabled");
  }

  private void fallsBack(final BlockSource source) {
    for (int round = 0; round < 2; round++) {
      assertThat(read(source)).containsEntry(BlockPath.UCX, source.blocks().size());
    }
    assertThat(fabric.copies).hasValue(0);
    assertThat(handles).as("it is not tried again").hasValueLessThanOrEqualTo(2);
  }

  private static String loggedWhile(final Runnable action) {
    final PrintStream before = System.err;
    final ByteArrayOutputStream log = new ByteArrayOutputStream();
    System.setErr(new PrintStream(log, true, StandardCharsets.UTF_8));
    try {
      action.run();
    } finally {
      System.setErr(before);
    }
    return log.toString(StandardCharsets.UTF_8);
  }

  @Test
  void anExportThatFailsIsNoReasonToStageBlocks() {
    start();
    fabric.refusesExports = true;
    final BlockSource source = write();
    assertThat(read(source)).containsEntry(BlockPath.UCX, source.blocks().size());
  }

  @Test
  void anotherCliqueIsNotTried() {
    readersDevice.close();
    readersDevice = new DeviceOnlyGpu(new FakeFabric(OTHER));
    start();
    final BlockSource source = write();
    assertThat(read(source)).containsEntry(BlockPath.UCX, source.blocks().size());
    assertThat(handles).hasValue(0);
  }

  @Test
  void whereThePathIsNotAllowedItIsNotTried() {
    start(EnumSet.of(BlockPath.LOCAL, BlockPath.UCX));
    assertThat(reader.location().clique()).isEmpty();
    final BlockSource source = write();
    assertThat(read(source)).containsEntry(BlockPath.UCX, source.blocks().size());
    assertThat(handles).hasValue(0);
  }

  @Test
  void readersOnTheHostHaveNoUseOfIt() throws Exception {
    start();
    final BlockSource source = write();
    final FakeStaging staging = new FakeStaging(block -> GpuBlocks.expected(block, BATCHES));
    try (Fetch fetcher = reader.fetch(List.of(source), staging, TestNodes.quiet(), () -> false)) {
      while (fetcher.next()) {
        assertThat(fetcher.block().path()).isEqualTo(BlockPath.STAGED);
        assertThat(TestNodes.read(fetcher.block()))
            .isEqualTo(GpuBlocks.expected(fetcher.block().block(), BATCHES));
      }
    }
    assertThat(handles).hasValue(0);
  }

  @Test
  void anOwnerThatDiesDuringACopyFailsTheFetch() {
    start();
    final BlockSource source = write();
    final FakeStaging deserted = new FakeStaging(BATCHES, 1);
    deserted.desert();
    beforeOneCopy(
        () -> {
          channels.resets = true;
          channels.breakLinks();
          fabric.lose();
        });
    assertThatThrownBy(() -> fetch(source, deserted))
        .isInstanceOf(BlockFetchException.class)
        .hasCauseInstanceOf(OwnerGoneException.class);
    TestNodes.eventually("nothing of it is mapped", () -> fabric.mappings() == 0);
    channels.resets = false;
  }

  @Test
  void anOwnerThatDiedBeforeIsNotAskedForHandles() {
    start();
    final BlockSource source = write();
    readByPeer(source);
    final int copies = fabric.copies.get();
    final FakeStaging deserted = new FakeStaging(BATCHES, 1);
    deserted.desert();
    channels.resets = true;
    channels.breakLinks();
    fabric.lose();
    assertThatThrownBy(() -> fetch(source, deserted))
        .isInstanceOf(BlockFetchException.class)
        .hasCauseInstanceOf(OwnerGoneException.class);
    assertThat(fabric.copies).as("what is mapped is not read").hasValue(copies);
    channels.resets = false;
  }

  private void fetch(final BlockSource source, final FakeStaging staging) {
    try (Fetch fetcher =
        reader
            .fetches()
            .begin(List.of(source), staging, TestNodes.quiet(), ReadSide.DEVICE, () -> false)) {
      while (fetcher.next()) {
        assertThat(fetcher.block().path()).isNotEqualTo(BlockPath.STAGED);
      }
    }
  }

  @Test
  void whatWasCopiedIsThrownAwayIfTheLeaseWasLostMeanwhile() {
    start();
    final BlockSource source = write();
    final AtomicInteger closes = new AtomicInteger();
    channels.onQuestion =
        question -> {
          if (question.get() == Wire.CLOSE && closes.incrementAndGet() == 1) {
            channels.breakLinks();
          }
        };
    readByPeer(source);
    assertThat(closes).hasValueGreaterThan(1);
  }

  @Test
  void anOwnerThatFreesBlocksKeepsThemUntilTheyAreCopied() {
    start();
    final BlockSource source = made.write(owner, "1", 1, BATCHES);
    beforeOneCopy(() -> owner.unregisterShuffle(1));
    readByPeer(source);
    TestNodes.assertNothingHeld(owner);
  }

  @Test
  void aReaderThatIsGoneHoldsNothing() {
    start();
    write();
    final DeviceOnlyGpu device = new DeviceOnlyGpu(fabric);
    try (ShuffleNode other =
            ShuffleNode.start(config("3", EnumSet.allOf(BlockPath.class)), device);
        GpuBlocks others = new GpuBlocks(device)) {
      others.readAll(other, write2(), BATCHES, block -> {});
    }
    TestNodes.eventually("its leases have ended", () -> owner.stats().leases().open() == 0);
  }

  /** Another map output of the same shuffle. */
  private BlockSource write2() {
    owner.unregisterShuffle(1);
    return write();
  }

  @Test
  void aCopyThatFailsSendsTheRestByUcx() {
    start();
    final BlockSource source = write();
    beforeOneCopy(
        () -> {
          throw new ZerohopException(Category.RETRY, "a test wants it");
        });
    final Map<BlockPath, Integer> paths = read(source);
    assertThat(paths).containsKey(BlockPath.UCX).doesNotContainKey(BlockPath.STAGED);
    TestNodes.eventually("its segment is no longer mapped", () -> fabric.mappings() == 0);
  }
}
