package io.zerohop.shuffle;

import static org.assertj.core.api.Assertions.assertThat;

import io.zerohop.device.CopyBatch;
import io.zerohop.device.CopyStream;
import io.zerohop.device.Segment;
import io.zerohop.shuffle.block.Block;
import io.zerohop.shuffle.block.BlockPath;
import io.zerohop.shuffle.block.BlockSource;
import io.zerohop.shuffle.block.ReadSide;
import io.zerohop.shuffle.extent.ExtentList.ExtentConsumer;
import io.zerohop.shuffle.fetch.Fetch;
import io.zerohop.shuffle.fetch.FetchedBlock;
import io.zerohop.shuffle.transport.Transport.FallbackTransport;
import io.zerohop.shuffle.write.MapOutput;
import io.zerohop.shuffle.write.MapOutput.PackSource;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.function.Consumer;
import java.util.zip.CRC32C;
import org.agrona.concurrent.UnsafeBuffer;

/**
 * Blocks as map tasks on a GPU make them and reduce tasks on one read them: a header on the host
 * and a payload on the device for each batch. Owns some memory of one device.
 */
public final class GpuBlocks implements AutoCloseable {
  public static final int PARTITIONS = 12;
  static final int MOST = 4_000;
  private static final long ROOM = 1 << 20;
  private static final Duration LIMIT = Duration.ofSeconds(20);

  private final Segment room;
  private boolean damaged;

  public GpuBlocks(final DeviceOnlyGpu device) {
    room = device.allocate(ROOM);
  }

  /** A batch as a map task on the GPU has it. */
  private PackSource payload(final long mapId, final int batch) {
    final byte[][] blocks = new byte[PARTITIONS][];
    final long[] addresses = new long[PARTITIONS];
    long at = room.address();
    for (int partition = 0; partition < PARTITIONS; partition++) {
      blocks[partition] = TestBlocks.bytes(1, mapId, batch, partition, MOST);
      addresses[partition] = at;
      new UnsafeBuffer(DeviceOnlyGpu.near(at), blocks[partition].length)
          .putBytes(0, blocks[partition]);
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
      public PackSource headers() {
        return GpuBlocks.headers(mapId, batch);
      }

      @Override
      public boolean hasChecksums() {
        return true;
      }

      @Override
      public int checksum(final int partition) {
        final CRC32C sum = new CRC32C();
        sum.update(blocks[partition]);
        return (int) sum.getValue() + (damaged ? 1 : 0);
      }

      @Override
      public void forEachChunk(final int partition, final ExtentConsumer consumer) {
        if (blocks[partition].length > 0) {
          consumer.extent(addresses[partition], blocks[partition].length);
        }
      }
    };
  }

  /** What is written from now on is other than what its checksums are of. */
  void damage() {
    damaged = true;
  }

  static byte[] header(final long mapId, final int batch, final int partition) {
    return String.format(java.util.Locale.ROOT, "%d/%d/%d;", mapId, batch, partition)
        .getBytes(java.nio.charset.StandardCharsets.UTF_8);
  }

  private static TestBlocks.Source headers(final long mapId, final int batch) {
    final byte[][] headers = new byte[PARTITIONS][];
    for (int partition = 0; partition < PARTITIONS; partition++) {
      headers[partition] = header(mapId, batch, partition);
    }
    return new TestBlocks.Source(headers, 5);
  }

  void append(final MapOutput writer, final long mapId, final int batch) {
    try {
      writer.append(payload(mapId, batch));
    } catch (final IOException e) {
      throw new UncheckedIOException(e); // It has no files.
    }
  }

  /** Writes shuffle 1 of an owner whose device this memory is of. */
  public BlockSource write(
      final ShuffleNode owner, final String executorId, final int maps, final int batches) {
    final List<Block> blocks = new ArrayList<>();
    for (long mapId = 0; mapId < maps; mapId++) {
      try (MapOutput writer = owner.newMapOutput(1, mapId, PARTITIONS)) {
        for (int batch = 0; batch < batches; batch++) {
          append(writer, mapId, batch);
        }
        final long[] lengths = writer.commit();
        for (int partition = 0; partition < PARTITIONS; partition++) {
          blocks.add(new Block(1, mapId, (int) mapId, partition, lengths[partition]));
        }
      } catch (final IOException e) {
        throw new UncheckedIOException(e); // It has no files.
      }
    }
    return new BlockSource(executorId, owner.location(), "owner", blocks);
  }

  /** What is to be read. */
  public static byte[] expected(final Block block, final int batches) {
    final ByteArrayOutputStream out = new ByteArrayOutputStream();
    for (int batch = 0; batch < batches; batch++) {
      out.writeBytes(header(block.mapId(), batch, block.partition()));
      out.writeBytes(TestBlocks.bytes(1, block.mapId(), batch, block.partition(), MOST));
    }
    return out.toByteArray();
  }

  /** Gathers what lies on the device by one submission, as a reader on a GPU does. */
  public byte[] gather(final ShuffleNode by, final FetchedBlock block) {
    final UnsafeBuffer there = new UnsafeBuffer(DeviceOnlyGpu.near(room.address()), (int) ROOM);
    final ByteArrayOutputStream out = new ByteArrayOutputStream();
    try (CopyStream stream = by.gpuStream()) {
      if (block.ready() != null) {
        stream.await(block.ready().signal(), block.ready().epoch(), LIMIT);
      }
      for (int i = 0; i < block.extentCount(); i++) {
        final byte[] bytes = new byte[block.extentLength(i)];
        if (block.extentOnDevice(i) || i % 2 == 1 && block.extentReachable(i)) {
          final CopyBatch batch = stream.newBatch();
          batch.add(block.extentAddress(i), room.address(), bytes.length);
          stream.submit(batch);
          stream.synchronize(LIMIT);
          there.getBytes(0, bytes);
        } else {
          new UnsafeBuffer(block.extentAddress(i), bytes.length).getBytes(0, bytes);
        }
        if (block.extentChecked(i)) {
          final CRC32C sum = new CRC32C();
          sum.update(bytes);
          block.verify(i, (int) sum.getValue());
        }
        out.writeBytes(bytes);
      }
    }
    return out.toByteArray();
  }

  /**
   * Reads all blocks as a GPU does and checks what is in them; none may be staged.
   *
   * @param each is given each block while it can be read
   * @return payloads that were on the reader's device or on a peer's
   */
  public int readAll(
      final ShuffleNode by,
      final BlockSource source,
      final int batches,
      final Consumer<FetchedBlock> each) {
    return readAll(by, source, batches, TestNodes.noStaging(), each);
  }

  /** The same with what stages blocks. */
  public int readAll(
      final ShuffleNode by,
      final BlockSource source,
      final int batches,
      final FallbackTransport staging,
      final Consumer<FetchedBlock> each) {
    int blocks = 0;
    int onDevice = 0;
    try (Fetch fetcher =
        by.fetches()
            .begin(List.of(source), staging, TestNodes.quiet(), ReadSide.DEVICE, () -> false)) {
      while (fetcher.next()) {
        final FetchedBlock block = fetcher.block();
        final byte[] bytes =
            block.path() == BlockPath.STAGED ? TestNodes.read(block) : gather(by, block);
        assertThat(bytes).isEqualTo(expected(block.block(), batches));
        for (int i = 0; i < block.extentCount(); i++) {
          onDevice += block.extentOnDevice(i) ? 1 : 0;
        }
        each.accept(block);
        blocks++;
      }
    }
    assertThat(blocks).isEqualTo(source.blocks().size());
    return onDevice;
  }

  @Override
  public void close() {
    room.close();
  }
}
