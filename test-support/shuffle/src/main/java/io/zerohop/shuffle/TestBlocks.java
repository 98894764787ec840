package io.zerohop.shuffle;

import io.zerohop.shuffle.block.Block;
import io.zerohop.shuffle.block.BlockSource;
import io.zerohop.shuffle.block.Location;
import io.zerohop.shuffle.extent.ExtentList.ExtentConsumer;
import io.zerohop.shuffle.pool.PoolFullException;
import io.zerohop.shuffle.pool.Tier;
import io.zerohop.shuffle.write.MapOutput;
import io.zerohop.shuffle.write.MapOutput.PackSource;
import io.zerohop.shuffle.write.WrittenBlocks;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import org.agrona.concurrent.UnsafeBuffer;

/** Block bytes that can be made again from the block's name, so that any process can check them. */
public final class TestBlocks {
  private TestBlocks() {}

  private static final int VALUES = 8;

  /**
   * The bytes that a block has in one batch; every fifth is empty, sizes vary up to the most. Of
   * few values, so that they can be compressed.
   */
  public static byte[] bytes(
      final int shuffleId, final long mapId, final int batch, final int partition, final int most) {
    final Random random =
        new Random(((shuffleId * 31L + mapId) * 31L + batch) * 1_000_003L + partition);
    final int length = random.nextInt(5) == 0 ? 0 : 1 + random.nextInt(most);
    final byte[] bytes = new byte[length];
    random.nextBytes(bytes);
    for (int i = 0; i < length; i++) {
      bytes[i] &= VALUES - 1;
    }
    return bytes;
  }

  /** All bytes of a block of some batches. */
  public static byte[] block(
      final int shuffleId,
      final long mapId,
      final int batches,
      final int partition,
      final int most) {
    final ByteBuffer all = ByteBuffer.allocate(batches * most);
    for (int batch = 0; batch < batches; batch++) {
      all.put(bytes(shuffleId, mapId, batch, partition, most));
    }
    final byte[] bytes = new byte[all.position()];
    all.flip().get(bytes);
    return bytes;
  }

  /** The bytes of a partition that a writer has taken so far, and that the host can reach. */
  static byte[] written(final MapOutput writer, final int partition) {
    final ByteArrayOutputStream bytes = new ByteArrayOutputStream();
    WrittenBlocks.forEachExtent(
        writer,
        partition,
        (address, length) -> {
          final byte[] extent = new byte[length];
          new UnsafeBuffer(address, length).getBytes(0, extent);
          bytes.writeBytes(extent);
        });
    return bytes.toByteArray();
  }

  /** A batch of such blocks, each in chunks of at most so many bytes. */
  public static Source batch(
      final int shuffleId,
      final long mapId,
      final int batch,
      final int partitions,
      final int most) {
    final byte[][] blocks = new byte[partitions][];
    for (int partition = 0; partition < partitions; partition++) {
      blocks[partition] = bytes(shuffleId, mapId, batch, partition, most);
    }
    return new Source(blocks, 97);
  }

  private static Tier tier(final ShuffleNode node) {
    return node.hasGpu() ? Tier.DEVICE : Tier.HOST;
  }

  /** Writes and commits a map output of such batches, on the GPU if the node has one. */
  public static long[] write(
      final ShuffleNode node,
      final int shuffleId,
      final long mapId,
      final int batches,
      final int partitions,
      final int most) {
    try (MapOutput writer = node.newMapOutput(shuffleId, mapId, partitions, tier(node), null)) {
      for (int batch = 0; batch < batches; batch++) {
        writer.append(batch(shuffleId, mapId, batch, partitions, most));
      }
      return writer.commit();
    } catch (final IOException e) {
      throw new UncheckedIOException(e); // It has no files.
    }
  }

  /**
   * The same as tasks do it, which go on in host memory if GPU memory has no room.
   *
   * @return whether there was room
   */
  public static boolean put(
      final ShuffleNode node,
      final int shuffleId,
      final long mapId,
      final int batches,
      final int partitions,
      final int most) {
    try {
      write(node, shuffleId, mapId, batches, partitions, most);
      return true;
    } catch (final PoolFullException e) {
      try (MapOutput writer = node.newMapOutput(shuffleId, mapId, partitions)) {
        for (int batch = 0; batch < batches; batch++) {
          writer.append(batch(shuffleId, mapId, batch, partitions, most));
        }
        writer.commit();
      } catch (final IOException failed) {
        throw new UncheckedIOException(failed); // It has no files.
      }
      return false;
    }
  }

  /** The blocks of some map outputs that are not empty, as Spark would list them. */
  public static BlockSource source(
      final String executorId,
      final Location location,
      final int shuffleId,
      final long firstMap,
      final int maps,
      final int batches,
      final int partitions,
      final int most) {
    final List<Block> blocks = new ArrayList<>();
    for (long mapId = firstMap; mapId < firstMap + maps; mapId++) {
      for (int partition = 0; partition < partitions; partition++) {
        final int length = block(shuffleId, mapId, batches, partition, most).length;
        if (length > 0) {
          blocks.add(new Block(shuffleId, mapId, (int) mapId, partition, length));
        }
      }
    }
    return new BlockSource(executorId, location, executorId, blocks);
  }

  /** Blocks in memory off the heap, cut into chunks. */
  public static final class Source implements PackSource {
    private final UnsafeBuffer memory;
    private final int[] ends;
    private final int chunk;

    public Source(final byte[][] blocks, final int chunk) {
      this.chunk = chunk;
      ends = new int[blocks.length];
      int end = 0;
      for (int i = 0; i < blocks.length; i++) {
        end += blocks[i].length;
        ends[i] = end;
      }
      memory = new UnsafeBuffer(ByteBuffer.allocateDirect(Math.max(end, 1)));
      int at = 0;
      for (final byte[] block : blocks) {
        memory.putBytes(at, block);
        at += block.length;
      }
    }

    @Override
    public int partitions() {
      return ends.length;
    }

    @Override
    public void forEachChunk(final int partition, final ExtentConsumer consumer) {
      int at = partition == 0 ? 0 : ends[partition - 1];
      while (at < ends[partition]) {
        final int length = Math.min(chunk, ends[partition] - at);
        consumer.extent(memory.addressOffset() + at, length);
        at += length;
      }
    }
  }
}
