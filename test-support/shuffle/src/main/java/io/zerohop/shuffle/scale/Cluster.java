package io.zerohop.shuffle.scale;

import io.zerohop.shuffle.ShuffleNode;
import io.zerohop.shuffle.TestNodes;
import io.zerohop.shuffle.block.Block;
import io.zerohop.shuffle.block.BlockSource;
import io.zerohop.shuffle.extent.ExtentList.ExtentConsumer;
import io.zerohop.shuffle.fetch.Fetch;
import io.zerohop.shuffle.pool.Tier;
import io.zerohop.shuffle.transport.ucx.FakeUcx;
import io.zerohop.shuffle.write.MapOutput;
import io.zerohop.shuffle.write.MapOutput.PackSource;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;
import java.util.function.UnaryOperator;
import org.agrona.concurrent.UnsafeBuffer;

/**
 * Executors on nodes of eight, whose map tasks have run: of the partitions a few have blocks, one
 * of each class of sizes. Owns the executors.
 */
final class Cluster implements AutoCloseable {
  static final int SHUFFLE = 1;
  static final int PER_NODE = 8;

  /** The sizes of blocks of partition 0, 1 and so on; all other partitions are empty. */
  static final int[] CLASSES = {64, 4 << 10, 32 << 10};

  private static final int MAX_POOL = 1 << 30;
  private static final int MIN_SEGMENT = 1 << 20;
  private static final int MAX_SEGMENT = 64 << 20;

  private final FakeUcx ucx = new FakeUcx();
  private final CountedChannels channels = new CountedChannels();
  private final List<Executor> executors = new ArrayList<>();
  private final int maps;
  private final int partitions;
  private final int owners;

  /** One of them. */
  static final class Executor {
    private final int number;
    private FakeUcx.Engine engine;
    private CountedChannels.Channel channel;
    private ShuffleNode node;

    private Executor(final int number) {
      this.number = number;
    }

    ShuffleNode node() {
      return node;
    }

    FakeUcx.Engine engine() {
      return engine;
    }

    CountedChannels.Channel channel() {
      return channel;
    }
  }

  /**
   * Starts the executors and writes the map outputs.
   *
   * @param base folder of their sockets
   * @param owners executors that have map outputs, the last ones
   * @param more what to set beside
   */
  Cluster(
      final java.nio.file.Path base,
      final int size,
      final int owners,
      final int maps,
      final int partitions,
      final UnaryOperator<ShuffleNode.Setup> more) {
    this.maps = maps;
    this.partitions = partitions;
    this.owners = owners;
    boolean done = false;
    try {
      for (int i = 0; i < size; i++) {
        executors.add(start(base, i, more));
      }
      for (int map = 0; map < maps; map++) {
        write(map);
      }
      done = true;
    } finally {
      if (!done) {
        close();
      }
    }
  }

  private Executor start(
      final java.nio.file.Path base,
      final int number,
      final UnaryOperator<ShuffleNode.Setup> more) {
    final Executor executor = new Executor(number);
    final int node = number / PER_NODE;
    final long mine = (long) maps / owners * bytesOfOutput();
    final ShuffleNode.Setup config =
        TestNodes.config(base.resolve("n" + node), Integer.toString(number))
            .set("node.id", "node-" + node)
            .set("pool.size", MAX_POOL)
            .set(
                "segment.size",
                Math.min(MAX_SEGMENT, Math.max(MIN_SEGMENT, Long.highestOneBit(mine))))
            .set("internal.ucx.emulatedGets", true)
            .ucx(
                onStart -> {
                  executor.engine = ucx.engine();
                  return executor.engine;
                },
                service -> {
                  executor.channel = channels.open(service);
                  return executor.channel;
                });
    executor.node = ShuffleNode.start(more.apply(config));
    return executor;
  }

  private static long bytesOfOutput() {
    long bytes = 0;
    for (final int each : CLASSES) {
      bytes += each;
    }
    return bytes;
  }

  private int ownerOf(final int map) {
    return executors.size() - owners + map % owners;
  }

  private void write(final int map) {
    final ShuffleNode node = executors.get(ownerOf(map)).node;
    try (MapOutput writer = node.newMapOutput(SHUFFLE, map, partitions, Tier.HOST, null)) {
      writer.append(new Output(partitions));
      writer.commit();
    } catch (final IOException e) {
      throw new UncheckedIOException(e); // It has no files.
    }
  }

  /** The same bytes for every map output. */
  private record Output(int partitions) implements PackSource {
    private static final UnsafeBuffer MEMORY =
        new UnsafeBuffer(ByteBuffer.allocateDirect(CLASSES[CLASSES.length - 1]));

    @Override
    public void forEachChunk(final int partition, final ExtentConsumer consumer) {
      if (partition < CLASSES.length) {
        consumer.extent(MEMORY.addressOffset(), CLASSES[partition]);
      }
    }
  }

  List<Executor> executors() {
    return executors;
  }

  Executor executor(final int number) {
    return executors.get(number);
  }

  /** Owners on other nodes than an executor's. */
  int remoteOwners(final Executor reader) {
    int count = 0;
    for (int i = executors.size() - owners; i < executors.size(); i++) {
      count += i / PER_NODE == reader.number / PER_NODE ? 0 : 1;
    }
    return Math.min(count, maps);
  }

  /** A reduce task's blocks, owner by owner, in the order in which it visits them. */
  List<BlockSource> sources(final int sizeClass, final long task) {
    final List<List<Block>> blocks = new ArrayList<>();
    for (int i = 0; i < owners; i++) {
      blocks.add(new ArrayList<>());
    }
    for (int map = 0; map < maps; map++) {
      blocks.get(map % owners).add(new Block(SHUFFLE, map, map, sizeClass, CLASSES[sizeClass]));
    }
    final List<BlockSource> sources = new ArrayList<>();
    for (int i = 0; i < owners; i++) {
      final Executor owner = executors.get(executors.size() - owners + i);
      if (!blocks.get(i).isEmpty()) {
        sources.add(
            new BlockSource(
                Integer.toString(owner.number),
                owner.node.location(),
                "host-" + owner.number / PER_NODE,
                blocks.get(i)));
      }
    }
    return BlockSource.turned(sources, task);
  }

  /** Reads what a reduce task would; returns the bytes. */
  static long read(final Executor reader, final List<BlockSource> sources) {
    long bytes = 0;
    try (Fetch fetcher = fetcher(reader, sources)) {
      while (fetcher.next()) {
        bytes += fetcher.block().bytes();
      }
    }
    return bytes;
  }

  static Fetch fetcher(final Executor reader, final List<BlockSource> sources) {
    return reader.node.fetch(sources, TestNodes.noStaging(), TestNodes.quiet(), () -> false);
  }

  @Override
  public void close() {
    for (final Executor executor : executors) {
      executor.node.unregisterShuffle(SHUFFLE);
      executor.node.close();
    }
    executors.clear();
    ucx.close();
  }
}
