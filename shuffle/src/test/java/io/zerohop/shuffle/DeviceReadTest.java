package io.zerohop.shuffle;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.zerohop.device.CopyBatch;
import io.zerohop.device.CopyStream;
import io.zerohop.device.HostBuffer;
import io.zerohop.device.Leaks;
import io.zerohop.device.Segment;
import io.zerohop.device.Topology;
import io.zerohop.shuffle.block.Block;
import io.zerohop.shuffle.block.BlockPath;
import io.zerohop.shuffle.block.BlockSource;
import io.zerohop.shuffle.block.DamagedOutputException;
import io.zerohop.shuffle.block.Link;
import io.zerohop.shuffle.block.ReadSide;
import io.zerohop.shuffle.catalog.MapOutputLease;
import io.zerohop.shuffle.fetch.BlockFetchException;
import io.zerohop.shuffle.fetch.Fetch;
import io.zerohop.shuffle.fetch.FetchedBlock;
import io.zerohop.shuffle.pool.PoolFullException;
import io.zerohop.shuffle.write.MapOutput;
import io.zerohop.shuffle.write.WrittenBlocks;
import java.io.IOException;
import java.io.InputStream;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;
import org.agrona.concurrent.UnsafeBuffer;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Blocks that are made on a GPU and read on one: a header on the host, a payload on the device. */
class DeviceReadTest {
  private static final int WINDOW_BYTES = 30_000;
  private static final Duration LIMIT = Duration.ofSeconds(20);
  private static final Topology LINKED =
      new Topology(
          List.of(
              new Topology.Gpu("GPU-owner", "0000:01:00.0", ""),
              new Topology.Gpu("GPU-reader", "0000:02:00.0", "")),
          new int[][] {{0, 18}, {18, 0}},
          new boolean[][] {{true, true}, {true, true}});

  @TempDir private java.nio.file.Path base;
  private final Leaks leaks = new Leaks();
  private final DeviceOnlyGpu ownersDevice = new DeviceOnlyGpu();
  private final DeviceOnlyGpu readersDevice = new DeviceOnlyGpu();
  private ShuffleNode owner;
  private ShuffleNode reader;
  private GpuBlocks made;
  private GpuBlocks readersBlocks;

  @BeforeEach
  void start() {
    owner = node("owner", ownersDevice);
    reader = node("reader", readersDevice);
    made = new GpuBlocks(ownersDevice);
    readersBlocks = new GpuBlocks(readersDevice);
  }

  private ShuffleNode node(final String executorId, final DeviceOnlyGpu device) {
    return ShuffleNode.start(
        TestNodes.config(base.resolve("s"), executorId)
            .gpu("GPU-" + executorId, LINKED)
            .set("device.window.size", WINDOW_BYTES)
            .set("device.pool.size", 512 << 10)
            .set("device.segment.size", 256 << 10)
            .set("pool.size", 4 << 20),
        device);
  }

  @AfterEach
  void noLeaks() {
    made.close();
    readersBlocks.close();
    for (final ShuffleNode node : List.of(reader, owner)) {
      node.unregisterShuffle(1);
      TestNodes.assertNothingHeld(node);
      node.close();
    }
    leaks.check();
  }

  @Test
  void aPeersDeviceReadsWhatTheOwnersDeviceMade() {
    final BlockSource source = made.write(owner, "owner", 8, 2);
    int blocks = 0;
    int windows = 0;
    int onDevice = 0;
    final List<FetchedBlock> all = new ArrayList<>();
    try (Fetch fetcher =
        reader
            .fetches()
            .begin(
                List.of(source),
                TestNodes.noStaging(),
                TestNodes.quiet(),
                ReadSide.DEVICE,
                () -> false)) {
      while (fetcher.next()) {
        final FetchedBlock block = fetcher.block();
        assertThat(readersBlocks.gather(reader, block))
            .isEqualTo(GpuBlocks.expected(block.block(), 2));
        for (int i = 0; i < block.extentCount(); i++) {
          onDevice += block.extentOnDevice(i) ? 1 : 0;
        }
        blocks++;
        windows += fetcher.endsWindow() ? 1 : 0;
        all.add(block);
      }
      assertThat(reader.stats().leases().open()).isEqualTo(windows);
      for (final FetchedBlock block : all) {
        assertThat(readersBlocks.gather(reader, block))
            .isEqualTo(GpuBlocks.expected(block.block(), 2));
      }
      fetcher.releaseWindows();
      assertThat(reader.stats().leases().open()).isZero();
    }
    assertThat(blocks).isEqualTo(source.blocks().size());
    assertThat(onDevice).isGreaterThan(blocks);
    assertThat(windows).isGreaterThan(3);
    final long headers = reader.fetches().bytes(Link.PEER_HOST); // Of blocks without a payload.
    assertThat(headers).isLessThan(100);
    assertThat(reader.fetches().bytes(Link.PEER_NVLINK))
        .isEqualTo(reader.fetches().moved(BlockPath.PEER).bytes() - headers);
    assertThat(reader.stats().receiveBuffers().bytes()).isZero();
  }

  @Test
  void theHostReadsTheSameBlocksInOrder() throws Exception {
    final BlockSource source = made.write(owner, "owner", 2, 3);
    try (Fetch fetcher =
        reader.fetch(List.of(source), TestNodes.noStaging(), TestNodes.quiet(), () -> false)) {
      while (fetcher.next()) {
        assertThat(TestNodes.read(fetcher.block()))
            .isEqualTo(GpuBlocks.expected(fetcher.block().block(), 3));
      }
    }
    try (MapOutputLease lease = owner.lease(1, 1);
        InputStream in = lease.stream(4)) {
      assertThat(in.readAllBytes()).isEqualTo(GpuBlocks.expected(new Block(1, 1, 1, 4, 1), 3));
    }
  }

  @Test
  void whatWasDamagedOnTheGpuIsRefusedByEveryReader() throws IOException {
    made.damage();
    final BlockSource source = made.write(owner, "owner", 1, 1);
    for (final ReadSide side : ReadSide.values()) {
      try (Fetch fetcher =
          reader
              .fetches()
              .begin(
                  List.of(source), TestNodes.noStaging(), TestNodes.quiet(), side, () -> false)) {
        assertThatThrownBy(
                () -> {
                  while (fetcher.next()) {
                    readersBlocks.gather(reader, fetcher.block());
                  }
                })
            .isInstanceOf(BlockFetchException.class)
            .hasMessageContaining("CRC32C is");
      }
    }
    try (MapOutput writer = owner.newMapOutput(1, 7, GpuBlocks.PARTITIONS)) {
      made.append(writer, 7, 0);
      assertThatThrownBy(() -> WrittenBlocks.forEachExtent(writer, 4, (address, length) -> {}))
          .isInstanceOf(DamagedOutputException.class);
    }
    try (MapOutputLease lease = owner.lease(1, 0)) {
      assertThatThrownBy(() -> lease.stream(4)).isInstanceOf(DamagedOutputException.class);
      assertThatThrownBy(() -> lease.forEachExtent(4, (address, length) -> {}))
          .isInstanceOf(DamagedOutputException.class);
    }
  }

  @Test
  void aFullDevicePoolSendsBatchesToTheHostWhereDevicesReadThem() {
    readThroughFullDevicePool();
    assertThat(ownersDevice.pins()).isPositive();
    assertThat(readersDevice.pins()).isPositive();
  }

  @Test
  void devicesThatCannotReachHostSegmentsGetCopies() {
    ownersDevice.refusePins(true);
    readersDevice.refusePins(true);
    readThroughFullDevicePool();
    assertThat(ownersDevice.pins()).isZero();
  }

  private void readThroughFullDevicePool() {
    final BlockSource source = made.write(owner, "owner", 60, 1);
    final AtomicInteger onHost = new AtomicInteger();
    readersBlocks.readAll(
        reader,
        source,
        1,
        block -> onHost.addAndGet(block.extentCount() == 2 && !block.extentOnDevice(1) ? 1 : 0));
    assertThat(onHost).hasPositiveValue();
  }

  @Test
  void whatFitsNowhereIsRefusedAsAWhole() throws IOException {
    final AtomicInteger full = new AtomicInteger();
    try (MapOutput writer = owner.newMapOutput(1, 0, GpuBlocks.PARTITIONS)) {
      assertThatThrownBy(
              () -> {
                for (int batch = 0; batch < 1_000; batch++) {
                  made.append(writer, 0, batch);
                  full.incrementAndGet();
                }
              })
          .isInstanceOf(PoolFullException.class);
      assertThat(writer.overflowedBytes()).isPositive();
      assertThat(TestBlocks.written(writer, 3))
          .isEqualTo(GpuBlocks.expected(new Block(1, 0, 0, 3, 1), full.get()));
    }
  }

  @Test
  void aReaderWithoutADeviceGetsSuchBlocksStaged() {
    final BlockSource source = made.write(owner, "owner", 1, 1);
    final ShuffleNode without = ShuffleNode.start(TestNodes.config(base.resolve("s"), "hostOnly"));
    final List<Block> asked = new ArrayList<>();
    try (Fetch fetcher =
        without.fetch(
            List.of(source),
            (from, blocks, sink) -> {
              asked.addAll(blocks);
              blocks.forEach(block -> sink.failed(block, new IllegalStateException("enough")));
            },
            TestNodes.quiet(),
            () -> false)) {
      assertThatThrownBy(
              () -> {
                while (fetcher.next()) {
                  assertThat(fetcher.block().path()).isEqualTo(BlockPath.PEER);
                }
              })
          .hasMessageContaining("enough");
    }
    without.close();
    assertThat(asked).isNotEmpty();
  }

  @Test
  void withoutPeerAccessOutputsGoToHostMemoryThatAllExecutorsMap() throws IOException {
    ownersDevice.refuseMaps(true);
    readersDevice.refuseMaps(true);
    final BlockSource first = made.write(owner, "owner", 1, 1);
    try (Fetch fetcher =
        reader
            .fetches()
            .begin(
                List.of(first),
                (from, blocks, sink) -> {
                  blocks.forEach(block -> sink.failed(block, new IllegalStateException("enough")));
                },
                TestNodes.quiet(),
                ReadSide.DEVICE,
                () -> false)) {
      assertThatThrownBy(
              () -> {
                while (fetcher.next()) {
                  assertThat(fetcher.block().path()).isEqualTo(BlockPath.PEER);
                }
              })
          .hasMessageContaining("enough");
    }
    final BlockSource source = readersBlocks.write(reader, "reader", 8, 2);
    made.readAll(owner, source, 2, block -> assertThat(onDevice(block)).isZero());
    assertThat(owner.fetches().bytes(Link.PEER_HOST))
        .isEqualTo(owner.fetches().moved(BlockPath.PEER).bytes())
        .isPositive();
    readersBlocks.readAll(reader, source, 2, block -> assertThat(onDevice(block)).isZero());
    assertThat(reader.stats().evictions().overflowedBytes()).isZero();

    // What has no room there goes to the GPU all the same.
    assertThat(reader.stats().device().usedBytes()).isZero();
    try (MapOutput writer = reader.newMapOutput(1, 1_000, GpuBlocks.PARTITIONS)) {
      assertThatThrownBy(
              () -> {
                for (int batch = 0; batch < 1_000; batch++) {
                  readersBlocks.append(writer, 0, batch);
                }
              })
          .isInstanceOf(PoolFullException.class);
      assertThat(reader.stats().device().usedBytes()).isPositive();
    }
  }

  private static int onDevice(final FetchedBlock block) {
    int extents = 0;
    for (int i = 0; i < block.extentCount(); i++) {
      extents += block.extentOnDevice(i) ? 1 : 0;
    }
    return extents;
  }

  @Test
  void hostBuffersAreReachable() {
    try (HostBuffer buffer = reader.gpuHostBuffer(100);
        Segment there = readersDevice.allocate(100);
        CopyStream stream = reader.gpuStream()) {
      new UnsafeBuffer(buffer.address(), 3).putBytes(0, new byte[] {1, 2, 3});
      final CopyBatch batch = stream.newBatch();
      batch.add(buffer.address(), there.address(), 3);
      stream.submit(batch);
      stream.synchronize(LIMIT);
      assertThat(new UnsafeBuffer(DeviceOnlyGpu.near(there.address()), 3).getByte(2))
          .isEqualTo((byte) 3);
    }
  }
}
