package io.zerohop.shuffle;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.zerohop.device.CopyBatch;
import io.zerohop.device.CopyStream;
import io.zerohop.device.HostBuffer;
import io.zerohop.device.Leaks;
import io.zerohop.device.Segment;
import io.zerohop.shuffle.fetch.BlockFetcher;
import io.zerohop.shuffle.fetch.BlockSource;
import io.zerohop.shuffle.fetch.FetchedBlock;
import io.zerohop.shuffle.fetch.ReadSide;
import io.zerohop.shuffle.pool.PoolFullException;
import java.io.ByteArrayOutputStream;
import java.io.InputStream;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import org.agrona.concurrent.UnsafeBuffer;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Blocks that are made on a GPU and read on one: a header on the host, a payload on the device. */
class DeviceReadTest {
  private static final int PARTITIONS = 12;
  private static final int MOST = 4_000;
  private static final int WINDOW_BYTES = 30_000;
  private static final Duration LIMIT = Duration.ofSeconds(20);

  @TempDir private java.nio.file.Path base;
  private final Leaks leaks = new Leaks();
  private final FarDevice ownersDevice = new FarDevice();
  private final FarDevice readersDevice = new FarDevice();
  private ShuffleNode owner;
  private ShuffleNode reader;
  private Segment made;
  private Segment landing;

  @BeforeEach
  void start() {
    owner = node("owner", ownersDevice);
    reader = node("reader", readersDevice);
    made = ownersDevice.allocate(1 << 20);
    landing = readersDevice.allocate(1 << 20);
  }

  private ShuffleNode node(final String executorId, final FarDevice device) {
    return ShuffleNode.start(
        TestNodes.config(base.resolve("s"), executorId)
            .deviceWindowBytes(WINDOW_BYTES)
            .devicePoolBytes(512 << 10)
            .deviceSegmentBytes(256 << 10)
            .poolBytes(4 << 20)
            .build(),
        device);
  }

  @AfterEach
  void noLeaks() {
    made.close();
    landing.close();
    for (final ShuffleNode node : List.of(reader, owner)) {
      node.unregisterShuffle(1);
      TestNodes.assertNothingHeld(node);
      node.close();
    }
    leaks.check();
  }

  /** A batch as a map task on the GPU has it. */
  private PackSource payload(final long mapId, final int batch) {
    final byte[][] blocks = new byte[PARTITIONS][];
    final long[] addresses = new long[PARTITIONS];
    long at = made.address();
    for (int partition = 0; partition < PARTITIONS; partition++) {
      blocks[partition] = TestBlocks.bytes(1, mapId, batch, partition, MOST);
      addresses[partition] = at;
      new UnsafeBuffer(FarDevice.near(at), blocks[partition].length).putBytes(0, blocks[partition]);
      at += blocks[partition].length;
    }
    return new PackSource() {
      @Override
      public int partitions() {
        return PARTITIONS;
      }

      @Override
      public boolean onDevice() {
        return true;
      }

      @Override
      public void forEachChunk(final int partition, final ExtentConsumer consumer) {
        if (blocks[partition].length > 0) {
          consumer.extent(addresses[partition], blocks[partition].length);
        }
      }
    };
  }

  private static byte[] header(final long mapId, final int batch, final int partition) {
    return String.format("%d/%d/%d;", mapId, batch, partition).getBytes();
  }

  private static TestBlocks.Source headers(final long mapId, final int batch) {
    final byte[][] headers = new byte[PARTITIONS][];
    for (int partition = 0; partition < PARTITIONS; partition++) {
      headers[partition] = header(mapId, batch, partition);
    }
    return new TestBlocks.Source(headers, 5);
  }

  private void append(final MapOutputWriter writer, final long mapId, final int batch) {
    writer.append(headers(mapId, batch), payload(mapId, batch));
  }

  private BlockSource write(final int maps, final int batches) {
    final List<Block> blocks = new ArrayList<>();
    for (long mapId = 0; mapId < maps; mapId++) {
      try (MapOutputWriter writer = owner.newMapOutput(1, mapId, PARTITIONS)) {
        for (int batch = 0; batch < batches; batch++) {
          append(writer, mapId, batch);
        }
        final long[] lengths = writer.commit();
        for (int partition = 0; partition < PARTITIONS; partition++) {
          blocks.add(new Block(1, mapId, (int) mapId, partition, lengths[partition]));
        }
      }
    }
    return new BlockSource("owner", owner.location(), "owner", blocks);
  }

  private static byte[] expected(final Block block, final int batches) {
    final ByteArrayOutputStream out = new ByteArrayOutputStream();
    for (int batch = 0; batch < batches; batch++) {
      out.writeBytes(header(block.mapId(), batch, block.partition()));
      out.writeBytes(TestBlocks.bytes(1, block.mapId(), batch, block.partition(), MOST));
    }
    return out.toByteArray();
  }

  /** Gathers what lies on the device by one submission, as a reader on a GPU does. */
  private byte[] gather(final ShuffleNode by, final FetchedBlock block) {
    final UnsafeBuffer there = new UnsafeBuffer(FarDevice.near(landing.address()), 1 << 20);
    final ByteArrayOutputStream out = new ByteArrayOutputStream();
    try (CopyStream stream = by.gpuStream()) {
      for (int i = 0; i < block.extentCount(); i++) {
        final byte[] bytes = new byte[block.extentLength(i)];
        if (block.extentOnDevice(i) || i % 2 == 1 && block.extentReachable(i)) {
          final CopyBatch batch = stream.newBatch();
          batch.add(block.extentAddress(i), landing.address(), bytes.length);
          stream.submit(batch);
          stream.synchronize(LIMIT);
          there.getBytes(0, bytes);
        } else {
          new UnsafeBuffer(block.extentAddress(i), bytes.length).getBytes(0, bytes);
        }
        out.writeBytes(bytes);
      }
    }
    return out.toByteArray();
  }

  @Test
  void aPeersDeviceReadsWhatTheOwnersDeviceMade() {
    final BlockSource source = write(8, 2);
    int blocks = 0;
    int windows = 0;
    int onDevice = 0;
    final List<FetchedBlock> all = new ArrayList<>();
    try (BlockFetcher fetcher =
        reader.fetch(
            List.of(source),
            TestNodes.noStaging(),
            TestNodes.quiet(),
            ReadSide.DEVICE,
            () -> false)) {
      while (fetcher.next()) {
        final FetchedBlock block = fetcher.block();
        assertThat(gather(reader, block)).isEqualTo(expected(block.block(), 2));
        for (int i = 0; i < block.extentCount(); i++) {
          onDevice += block.extentOnDevice(i) ? 1 : 0;
        }
        blocks++;
        windows += fetcher.endsWindow() ? 1 : 0;
        all.add(block);
      }
      assertThat(reader.stats().openLeases()).isEqualTo(windows);
      for (final FetchedBlock block : all) {
        assertThat(gather(reader, block)).isEqualTo(expected(block.block(), 2));
      }
      fetcher.releaseWindows();
      assertThat(reader.stats().openLeases()).isZero();
    }
    assertThat(blocks).isEqualTo(source.blocks().size());
    assertThat(onDevice).isGreaterThan(blocks);
    assertThat(windows).isGreaterThan(3);
    assertThat(reader.stats().landingBytes()).isZero();
  }

  @Test
  void theHostReadsTheSameBlocksInOrder() throws Exception {
    final BlockSource source = write(2, 3);
    try (BlockFetcher fetcher =
        reader.fetch(List.of(source), TestNodes.noStaging(), TestNodes.quiet(), () -> false)) {
      while (fetcher.next()) {
        assertThat(TestNodes.read(fetcher.block())).isEqualTo(expected(fetcher.block().block(), 3));
      }
    }
    try (MapOutputLease lease = owner.lease(1, 1);
        InputStream in = lease.stream(4)) {
      assertThat(in.readAllBytes()).isEqualTo(expected(new Block(1, 1, 1, 4, 1), 3));
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
    ownersDevice.refusePins();
    readersDevice.refusePins();
    readThroughFullDevicePool();
    assertThat(ownersDevice.pins()).isZero();
  }

  private void readThroughFullDevicePool() {
    final BlockSource source = write(60, 1);
    int onHost = 0;
    try (BlockFetcher fetcher =
        reader.fetch(
            List.of(source),
            TestNodes.noStaging(),
            TestNodes.quiet(),
            ReadSide.DEVICE,
            () -> false)) {
      while (fetcher.next()) {
        final FetchedBlock block = fetcher.block();
        assertThat(gather(reader, block)).isEqualTo(expected(block.block(), 1));
        onHost += block.extentCount() == 2 && !block.extentOnDevice(1) ? 1 : 0;
      }
    }
    assertThat(onHost).isPositive();
  }

  @Test
  void whatFitsNowhereIsRefusedAsAWhole() {
    final List<Long> full = new ArrayList<>();
    try (MapOutputWriter writer = owner.newMapOutput(1, 0, PARTITIONS)) {
      assertThatThrownBy(
              () -> {
                for (int batch = 0; batch < 1_000; batch++) {
                  append(writer, 0, batch);
                  full.add(writer.bytes());
                }
              })
          .isInstanceOf(PoolFullException.class);
      assertThat(writer.deflectedBytes()).isPositive();
      assertThat(writer.bytes()).isEqualTo(full.get(full.size() - 1));
      final ByteArrayOutputStream out = new ByteArrayOutputStream();
      writer.forEachExtent(
          3,
          (address, length) -> {
            final byte[] bytes = new byte[length];
            new UnsafeBuffer(address, length).getBytes(0, bytes);
            out.writeBytes(bytes);
          });
      assertThat(out.toByteArray()).isEqualTo(expected(new Block(1, 0, 0, 3, 1), full.size()));
    }
  }

  @Test
  void aReaderWithoutADeviceGetsSuchBlocksStaged() {
    final BlockSource source = write(1, 1);
    final ShuffleNode without =
        ShuffleNode.start(TestNodes.config(base.resolve("s"), "hostOnly").build());
    final List<Block> asked = new ArrayList<>();
    try (BlockFetcher fetcher =
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
                  assertThat(fetcher.block().path()).isEqualTo(Path.PEER);
                }
              })
          .hasMessageContaining("enough");
    }
    without.close();
    assertThat(asked).isNotEmpty();
  }

  @Test
  void hostBuffersAreReachable() {
    try (HostBuffer buffer = reader.gpuHostBuffer(100);
        CopyStream stream = reader.gpuStream()) {
      new UnsafeBuffer(buffer.address(), 3).putBytes(0, new byte[] {1, 2, 3});
      final CopyBatch batch = stream.newBatch();
      batch.add(buffer.address(), landing.address(), 3);
      stream.submit(batch);
      stream.synchronize(LIMIT);
    }
    assertThat(new UnsafeBuffer(FarDevice.near(landing.address()), 3).getByte(2))
        .isEqualTo((byte) 3);
  }
}
