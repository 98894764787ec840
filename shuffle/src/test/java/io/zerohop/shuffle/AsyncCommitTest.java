package io.zerohop.shuffle;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.zerohop.device.Leaks;
import io.zerohop.device.WaitException;
import io.zerohop.device.posix.Clock;
import io.zerohop.shuffle.block.Block;
import io.zerohop.shuffle.block.BlockSource;
import io.zerohop.shuffle.block.ReadSide;
import io.zerohop.shuffle.catalog.MapOutputLease;
import io.zerohop.shuffle.conf.Config;
import io.zerohop.shuffle.fetch.BlockFetchException;
import io.zerohop.shuffle.fetch.Fetch;
import io.zerohop.shuffle.spill.Evictor.EvictionScope;
import io.zerohop.shuffle.transport.ContactListener;
import io.zerohop.shuffle.transport.Self;
import io.zerohop.shuffle.transport.remote.RemoteService;
import io.zerohop.shuffle.transport.remote.Sends;
import io.zerohop.shuffle.transport.remote.ServedReader.SentReader;
import io.zerohop.shuffle.transport.remote.Slabs;
import io.zerohop.shuffle.transport.remote.Wire;
import io.zerohop.shuffle.transport.remote.Wire.Questions;
import io.zerohop.shuffle.write.MapOutput;
import io.zerohop.shuffle.write.WrittenBlocks;
import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.nio.ByteBuffer;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import org.assertj.core.api.ThrowableAssert.ThrowingCallable;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Map outputs that are published before the device has copied them. */
class AsyncCommitTest {
  private static final Duration BRIEF = Duration.ofMillis(100);
  private static final Duration PATIENT = Duration.ofSeconds(60);
  private static final long LIMIT_SECONDS = 30;

  @TempDir private java.nio.file.Path base;
  private final Leaks leaks = new Leaks();
  private final DeviceOnlyGpu ownersDevice = new DeviceOnlyGpu();
  private final DeviceOnlyGpu readersDevice = new DeviceOnlyGpu();
  private final List<ShuffleNode> nodes = new ArrayList<>();

  /** Apart from the owner's device, which some test ends while this is still read. */
  private final DeviceOnlyGpu taskMemory = new DeviceOnlyGpu();

  private final GpuBlocks made = new GpuBlocks(taskMemory);
  private final GpuBlocks readersBlocks = new GpuBlocks(readersDevice);

  private ShuffleNode node(final String executorId, final DeviceOnlyGpu device) {
    final ShuffleNode node =
        ShuffleNode.start(TestNodes.config(base.resolve("s"), executorId), device);
    nodes.add(node);
    return node;
  }

  /** A node that takes copies for late after so long. */
  private ShuffleNode impatient(final Duration limit) {
    final ShuffleNode node =
        ShuffleNode.start(
            TestNodes.config(base.resolve("s"), "owner").set("device.timeout", limit),
            ownersDevice);
    nodes.add(node);
    return node;
  }

  @AfterEach
  void noLeaks() {
    for (final ShuffleNode node : nodes) {
      TestNodes.eventually("nothing is copied", () -> node.stats().outputs().pendingCommits() == 0);
    }
    made.close();
    readersBlocks.close();
    for (final ShuffleNode node : nodes) {
      node.unregisterShuffle(1);
      TestNodes.assertNothingHeld(node);
      node.close();
    }
    for (final DeviceOnlyGpu device : List.of(ownersDevice, readersDevice, taskMemory)) {
      if (!device.isClosed()) {
        device.close();
      }
    }
    leaks.check();
  }

  /** An owner with three map outputs of which nothing is copied yet. */
  private BlockSource pending(final ShuffleNode owner) {
    ownersDevice.hold();
    final BlockSource source = made.write(owner, "owner", 1, 1);
    assertThat(owner.stats().outputs().pendingCommits()).isOne();
    assertThat(owner.stats().outputs().asyncCommits()).isOne();
    return source;
  }

  @Test
  void aReadersDeviceWaitsForTheOwnersDevice() throws Exception {
    final BlockSource source = pending(node("owner", ownersDevice));
    final ShuffleNode reader = node("reader", readersDevice);
    final CompletableFuture<Integer> read =
        CompletableFuture.supplyAsync(() -> readersBlocks.readAll(reader, source, 1, block -> {}));
    TestNodes.eventually("it was found", () -> reader.stats().leases().unreadyOutputs() == 1);
    Thread.sleep(BRIEF.toMillis());
    assertThat(read).isNotDone();
    ownersDevice.letGo();
    assertThat(read.get(LIMIT_SECONDS, TimeUnit.SECONDS)).isPositive();
    assertThat(
            readersBlocks.readAll(reader, source, 1, block -> assertThat(block.ready()).isNull()))
        .isPositive();
    assertThat(reader.stats().leases().unreadyOutputs()).isOne();
  }

  @Test
  void anOwnersOwnReaderWaitsToo() throws Exception {
    final ShuffleNode owner = node("owner", ownersDevice);
    final BlockSource source = pending(owner);
    final AtomicBoolean waited = new AtomicBoolean();
    try (Fetch fetcher = fetch(owner, source, ReadSide.DEVICE, () -> false)) {
      assertThat(fetcher.next()).isTrue();
      waited.set(fetcher.block().ready() != null);
    }
    ownersDevice.letGo();
    assertThat(waited).isTrue();
  }

  @Test
  void theHostWaitsAndSoDoesWhoSendsIt() throws Exception {
    final ShuffleNode owner = node("owner", ownersDevice);
    final BlockSource source = pending(owner);
    final ShuffleNode reader = node("reader", readersDevice);
    final CompletableFuture<byte[]> onHost =
        CompletableFuture.supplyAsync(
            () -> {
              try (Fetch fetcher = fetch(reader, source, ReadSide.HOST, () -> false)) {
                assertThat(fetcher.next()).isTrue();
                return TestNodes.read(fetcher.block());
              }
            });
    final CompletableFuture<byte[]> sent =
        CompletableFuture.supplyAsync(
            () -> {
              try (MapOutputLease lease = owner.lease(1, 0);
                  InputStream in = lease.stream(source.blocks().get(0).partition())) {
                return in.readAllBytes();
              } catch (final java.io.IOException e) {
                throw new AssertionError(e);
              }
            });
    TestNodes.eventually("it was found", () -> reader.stats().leases().unreadyOutputs() == 1);
    Thread.sleep(BRIEF.toMillis());
    assertThat(onHost).isNotDone();
    assertThat(sent).isNotDone();
    ownersDevice.letGo();
    final byte[] expected = GpuBlocks.expected(source.blocks().get(0), 1);
    assertThat(onHost.get(LIMIT_SECONDS, TimeUnit.SECONDS)).isEqualTo(expected);
    assertThat(sent.get(LIMIT_SECONDS, TimeUnit.SECONDS)).isEqualTo(expected);
  }

  @Test
  void memoryIsNobodyElsesBeforeTheCopiesIntoItHaveEnded() {
    final ShuffleNode owner = node("owner", ownersDevice);
    pending(owner);
    final long used = owner.stats().device().usedBytes();
    assertThat(used).isPositive();
    owner.unregisterShuffle(1);
    assertThat(owner.shrinkDevicePool(used, EvictionScope.ALL, BRIEF)).isZero();
    assertThat(owner.stats().device().usedBytes()).isEqualTo(used);
    ownersDevice.letGo();
    TestNodes.eventually("it is freed", () -> owner.stats().device().usedBytes() == 0);
  }

  @Test
  void whatIsUnderWayDoesNotMoveToTheHost() {
    final ShuffleNode owner = node("owner", ownersDevice);
    final BlockSource source = pending(owner);
    assertThat(owner.shrinkDevicePool(1, EvictionScope.ALL, PATIENT)).as("it gives up").isZero();
    assertThat(owner.stats().evictions().toHost().outputs()).isZero();
    ownersDevice.letGo();
    TestNodes.eventually("it is there", () -> owner.stats().outputs().pendingCommits() == 0);
    assertThat(owner.shrinkDevicePool(1, EvictionScope.ALL, PATIENT)).isPositive();
    movedOne(owner);
    readersBlocks.readAll(node("reader", readersDevice), source, 1, block -> {});
  }

  @Test
  void aReaderThatIsCancelledWaitsNoLonger() {
    final BlockSource source = pending(node("owner", ownersDevice));
    final AtomicBoolean cancelled = new AtomicBoolean();
    try (Fetch fetcher =
        fetch(node("reader", readersDevice), source, ReadSide.DEVICE, cancelled::get)) {
      assertThat(fetcher.next()).isTrue();
      cancelled.set(true);
      assertThatThrownBy(fetcher.block()::awaitReady).isInstanceOf(WaitException.class);
    }
    ownersDevice.letGo();
  }

  @Test
  void anEndingOwnerWaitsForWhatItHasPromised() throws Exception {
    final ShuffleNode owner = node("owner", ownersDevice);
    final BlockSource source = pending(owner);
    final ShuffleNode reader = node("reader", readersDevice);
    final CompletableFuture<Integer> read =
        CompletableFuture.supplyAsync(() -> readersBlocks.readAll(reader, source, 1, block -> {}));
    TestNodes.eventually("it was found", () -> reader.stats().leases().unreadyOutputs() == 1);
    TestNodes.eventually(
        "all three segments are mapped", () -> Holdings.of(reader).mappedSegments() == 3);
    nodes.remove(owner);
    final CompletableFuture<Void> end = CompletableFuture.runAsync(owner::close);
    Thread.sleep(BRIEF.toMillis());
    assertThat(end).isNotDone();
    ownersDevice.letGo();
    assertThat(read.get(LIMIT_SECONDS, TimeUnit.SECONDS)).isPositive();
    end.get(LIMIT_SECONDS, TimeUnit.SECONDS);
  }

  /**
   * The memory is not the writer's any more: published once more, it would be others' by and by.
   */
  @Test
  void aCommitThatFailsOnceItIsPublishedIsNotTriedAgain() throws IOException {
    final ShuffleNode owner = node("owner", ownersDevice);
    try (MapOutput writer = owner.newMapOutput(1, 0, GpuBlocks.PARTITIONS)) {
      made.append(writer, 0, 0);
      ownersDevice.refusePins(true); // So that the commit waits for the copies itself.
      final String here = Thread.currentThread().getName();
      ownersDevice.fail(here, DeviceOnlyGpu.Failure.TIMED_OUT);
      assertThatThrownBy(writer::commit).isInstanceOf(WaitException.class);
      ownersDevice.fail(here, DeviceOnlyGpu.Failure.NONE);
      final List<ThrowingCallable> all =
          List.of(
              writer::commit,
              () -> made.append(writer, 0, 1),
              () -> WrittenBlocks.forEachExtent(writer, 0, (address, length) -> {}));
      for (final ThrowingCallable use : all) {
        assertThatThrownBy(use)
            .isInstanceOf(IllegalStateException.class)
            .hasMessage("the output of map 0 of shuffle 1 is committed");
      }
      assertThat(Holdings.of(owner).outputs()).isZero();
    }
  }

  /** Killed between publishing and the end of its copies: nothing of it is taken for complete. */
  @Test
  void readersOfAnOwnerThatIsKilledMeanwhileFailAtOnce() throws Exception {
    final ShuffleNode reader = node("reader", readersDevice);
    try (NodeProcess owner = new NodeProcess(base.resolve("s"), NodeProcess.WITH_DEVICE)) {
      assertThat(owner.ask("pend", 1)).isEqualTo("1");
      final BlockSource source =
          new BlockSource("far", owner.location(), "far", List.of(new Block(1, 0, 0, 0, 100)));
      final List<CompletableFuture<Void>> reads = new ArrayList<>();
      for (final ReadSide side : ReadSide.values()) {
        reads.add(CompletableFuture.runAsync(() -> readFirst(reader, source, side)));
      }
      TestNodes.eventually(
          "it was found", () -> reader.stats().leases().unreadyOutputs() == reads.size());
      TestNodes.eventually(
          "all three segments are mapped", () -> Holdings.of(reader).mappedSegments() == 3);
      assertThat(reads).noneMatch(CompletableFuture::isDone);
      owner.kill();
      for (final CompletableFuture<Void> read : reads) {
        assertThatThrownBy(() -> read.get(LIMIT_SECONDS / 3, TimeUnit.SECONDS))
            .hasCauseInstanceOf(BlockFetchException.class)
            .hasMessageContaining("did not become ready");
      }
    }
  }

  /** The executor goes on: its other outputs are well, and so is what it writes afterwards. */
  @Test
  void copiesThatAreLateFailTheirOwnOutputAlone() throws Exception {
    final ShuffleNode owner = impatient(Duration.ofSeconds(2));
    final BlockSource well = one(owner, 0);
    TestNodes.eventually("it is there", () -> owner.stats().outputs().pendingCommits() == 0);
    final ShuffleNode reader = node("reader", readersDevice);
    assertThat(readersBlocks.readAll(reader, well, 1, block -> {})).isPositive();
    final long before = owner.stats().device().usedBytes();
    ownersDevice.hold();
    final BlockSource late = one(owner, 1);
    final List<CompletableFuture<Void>> reads = new ArrayList<>();
    for (final ReadSide side : ReadSide.values()) {
      reads.add(CompletableFuture.runAsync(() -> readFirst(reader, late, side)));
    }
    for (final CompletableFuture<Void> read : reads) {
      assertThatThrownBy(() -> read.get(LIMIT_SECONDS, TimeUnit.SECONDS))
          .hasCauseInstanceOf(BlockFetchException.class)
          .hasMessageContaining("did not become ready");
    }
    TestNodes.eventually("it is withdrawn", () -> !owner.holds(1, 1));
    assertThat(owner.stats().outputs().pendingCommits()).isOne();
    assertThat(owner.stats().device().usedBytes()).isGreaterThan(before);
    assertThat(readersBlocks.readAll(reader, well, 1, block -> {})).isPositive();
    ownersDevice.letGo();
    TestNodes.eventually("its memory is free", () -> owner.stats().device().usedBytes() == before);
    assertThat(readersBlocks.readAll(reader, one(owner, 2), 1, block -> {})).isPositive();
  }

  /** A map output of shuffle 1. */
  private BlockSource one(final ShuffleNode owner, final long mapId) {
    try (MapOutput writer = owner.newMapOutput(1, mapId, GpuBlocks.PARTITIONS)) {
      made.append(writer, mapId, 0);
      final long[] lengths = writer.commit();
      final List<Block> blocks = new ArrayList<>();
      for (int partition = 0; partition < lengths.length; partition++) {
        if (lengths[partition] > 0) {
          blocks.add(new Block(1, mapId, (int) mapId, partition, lengths[partition]));
        }
      }
      return new BlockSource("owner", owner.location(), "owner", blocks);
    } catch (final IOException e) {
      throw new UncheckedIOException(e); // It has no files.
    }
  }

  /** Two threads answer all readers: they must not wait for a GPU. */
  @Test
  void whoServesOtherNodesAnswersOthersWhileCopiesAreUnderWay() {
    final ShuffleNode owner = node("owner", ownersDevice);
    final RemoteService<SentReader> service = service(owner, Duration.ofMinutes(1));
    pending(owner);
    final List<ByteBuffer> answers = new ArrayList<>();
    service.asked(1, question(), answers::add);
    service.asked(1, Questions.ping(), answers::add);
    assertThat(answers).hasSize(1);
    service.maintain();
    assertThat(answers).hasSize(1);
    assertThat(service.leases()).isOne();
    ownersDevice.letGo();
    TestNodes.eventually("it is there", () -> owner.stats().outputs().pendingCommits() == 0);
    service.maintain();
    assertThat(answers).hasSize(2);
    assertThat(answers.get(1).get()).isEqualTo(Wire.GRANTED);
    service.close();
    assertThat(service.leases()).isZero();
  }

  @Test
  void whoServesOtherNodesRefusesWhatIsNotThereInTime() {
    final ShuffleNode owner = node("owner", ownersDevice);
    final RemoteService<SentReader> service = service(owner, Duration.ZERO);
    pending(owner);
    final List<ByteBuffer> answers = new ArrayList<>();
    service.asked(1, question(), answers::add);
    service.maintain();
    assertThat(answers).hasSize(1);
    assertThat(answers.get(0).get()).isEqualTo(Wire.REFUSED);
    service.asked(2, question(), answers::add);
    service.disconnected(2);
    service.maintain();
    assertThat(service.leases()).isZero();
    ownersDevice.letGo();
  }

  /** For a block of map output 0. */
  private static ByteBuffer question() {
    return ByteBuffer.allocate(21).put(Wire.OPEN).putInt(1).putInt(1).putLong(0).putInt(0).flip();
  }

  private static RemoteService<SentReader> service(final ShuffleNode owner, final Duration limit) {
    final NodeParts parts = owner.parts;
    final Slabs slabs = new Slabs(parts.devices.host()::hostBuffer, 0, Clock.system());
    final Config conf =
        Config.defaults().with("device.timeout", limit).with("request.timeout", Duration.ZERO);
    return new Sends(
        conf,
        new Self("owner", 1, ContactListener.NONE, Clock.system()),
        parts.outputs,
        Runnable::run,
        Runnable::run,
        Runnable::run,
        null,
        slabs,
        parts.devices);
  }

  /** As a thread of Spark's that serves other connections, too. */
  @Test
  void whoCannotWaitGetsNoLeaseAndHoldsNothing() {
    final ShuffleNode owner = node("owner", ownersDevice);
    pending(owner);
    assertThatThrownBy(() -> owner.lease(1, 0, BRIEF)).isInstanceOf(WaitException.class);
    ownersDevice.letGo();
  }

  /** RAPIDS may be out of memory right behind a map task. */
  @Test
  void aSpillWaitsAMomentForCopiesThatAreUnderWay() throws Exception {
    final ShuffleNode owner = node("owner", ownersDevice);
    pending(owner);
    final CompletableFuture<Void> copied =
        CompletableFuture.runAsync(
            ownersDevice::letGo, CompletableFuture.delayedExecutor(10, TimeUnit.MILLISECONDS));
    assertThat(owner.shrinkDevicePool(1, EvictionScope.ALL, PATIENT)).isPositive();
    copied.get(LIMIT_SECONDS, TimeUnit.SECONDS);
    movedOne(owner);
  }

  /** Who follows the copies holds the memory until it has seen that they have ended. */
  @Test
  void aSpillWaitsForWhoFollowsTheCopies() {
    final ShuffleNode owner = node("owner", ownersDevice);
    pending(owner);
    ownersDevice.fail("zerohop-copy-completions", DeviceOnlyGpu.Failure.LATE);
    ownersDevice.letGo();
    assertThat(owner.shrinkDevicePool(1, EvictionScope.ALL, PATIENT)).isPositive();
    movedOne(owner);
  }

  /** It is counted a moment after its memory was given back. */
  private static void movedOne(final ShuffleNode owner) {
    TestNodes.eventually("it is counted", () -> owner.stats().evictions().toHost().outputs() == 1);
  }

  /** Nothing of its memory is given to others then, so this takes a process of its own. */
  @Test
  void copiesThatFailEndTheExecutorAndItsReadersAreTold() throws Exception {
    final ShuffleNode reader = node("reader", readersDevice);
    try (NodeProcess owner = new NodeProcess(base.resolve("s"), NodeProcess.WITH_DEVICE)) {
      assertThat(owner.ask("fail"))
          .startsWith("java.lang.InternalError")
          .contains("map output 0 of shuffle 1");
      final long used = Long.parseLong(owner.ask("used"));
      assertThat(used).isPositive();
      final BlockSource source =
          new BlockSource("far", owner.location(), "far", List.of(new Block(1, 0, 0, 0, 100)));
      assertThatThrownBy(() -> readFirst(reader, source, ReadSide.DEVICE))
          .hasMessageContaining("staged: [");
      assertThat(owner.ask("pend", 1)).contains("the GPU of this executor has failed");
      owner.kill();
    }
  }

  private static void readFirst(
      final ShuffleNode by, final BlockSource source, final ReadSide side) {
    try (Fetch fetcher = fetch(by, source, side, () -> false)) {
      assertThat(fetcher.next()).isTrue();
      fetcher.block().awaitReady();
    }
  }

  private static Fetch fetch(
      final ShuffleNode by,
      final BlockSource source,
      final ReadSide side,
      final java.util.function.BooleanSupplier cancelled) {
    return by.fetches()
        .begin(List.of(source), TestNodes.noStaging(), TestNodes.quiet(), side, cancelled);
  }
}
