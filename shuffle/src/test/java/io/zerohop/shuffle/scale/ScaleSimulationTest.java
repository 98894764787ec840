package io.zerohop.shuffle.scale;

import static org.assertj.core.api.Assertions.assertThat;

import io.zerohop.shuffle.ShuffleNode;
import io.zerohop.shuffle.TestNodes;
import io.zerohop.shuffle.block.BlockSource;
import io.zerohop.shuffle.extent.ExtentList.ExtentConsumer;
import io.zerohop.shuffle.fetch.Fetch;
import io.zerohop.shuffle.pool.Tier;
import io.zerohop.shuffle.write.MapOutput;
import io.zerohop.shuffle.write.MapOutput.PackSource;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.ByteBuffer;
import java.util.List;
import java.util.function.UnaryOperator;
import java.util.stream.IntStream;
import org.agrona.concurrent.UnsafeBuffer;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/**
 * What executors cost one another, with up to a thousand of them and 10,000 map tasks of 10,000
 * partitions where rows are wanted ({@link Rows}), else with a few. Figures are for the rows;
 * checked is what has to hold for any number.
 */
@Timeout(1200)
class ScaleSimulationTest {
  private static final int MAPS = Rows.wanted() ? 10_000 : 200;
  private static final int PARTITIONS = Rows.wanted() ? 10_000 : 200;

  /** Executors that have the map outputs of a small stage. */
  private static final int FEW = Rows.wanted() ? 16 : 4;

  @TempDir private java.nio.file.Path base;

  static IntStream sizes() {
    return Rows.wanted()
        ? IntStream.of(2, 8, 16, 32, 64, 128, 256, 512, 1000)
        : IntStream.of(2, 16);
  }

  private Cluster cluster(final int size, final int owners) {
    return new Cluster(base, size, owners, MAPS, PARTITIONS, UnaryOperator.identity());
  }

  private static int nodes(final int executors) {
    return (executors + Cluster.PER_NODE - 1) / Cluster.PER_NODE;
  }

  @ParameterizedTest
  @MethodSource("sizes")
  void everyExecutorIsReadByAReduceTask(final int size) {
    try (Cluster cluster = cluster(size, size)) {
      final Cluster.Executor reader = cluster.executor(0);
      final int peers = cluster.remoteOwners(reader);
      final long local = inPlace(reader, cluster);
      warmUp(cluster);
      final Usage before = Usage.now();
      final long afterFirst = contact(cluster, reader);
      final long contactBytes =
          reader.engine().receivedBytes() - (MAPS - local) * Cluster.CLASSES[0];
      final long contactQuestions = reader.channel().questions() - 2L * peers;
      final List<Cluster.Executor> node =
          cluster.executors().subList(1, Math.min(size, Cluster.PER_NODE));
      node.forEach(each -> Cluster.read(each, cluster.sources(0, 1)));
      final Usage after = Usage.now();
      final int pairs = peers * (1 + node.size());
      final double planned = planMicros(cluster, reader);
      Rows.write(
          "case",
          "reader",
          "executors",
          size,
          "nodes",
          nodes(size),
          "peers",
          peers,
          "connections",
          reader.channel().links(),
          "endpoints",
          reader.engine().endpoints(),
          "mapped_peers",
          reader.node().stats().peers().readable(),
          "threads_more",
          after.threads() - before.threads(),
          "threads_each",
          Math.round(10.0 * before.threads() / size) / 10.0,
          "pair_heap_bytes",
          pairs == 0 ? 0 : (after.heap() - before.heap()) / pairs,
          "contact_bytes",
          contactBytes,
          "contact_questions",
          contactQuestions,
          "contacts_before_first_block",
          afterFirst,
          "route_us",
          planned);
      assertThat(reader.channel().links()).isEqualTo(peers);
      assertThat(reader.node().stats().peers().owners()).isEqualTo(peers);
      assertThat(after.threads()).as("no thread for a peer").isLessThan(before.threads() + 10);
      for (int sizeClass = 0; sizeClass < Cluster.CLASSES.length; sizeClass++) {
        fetch(cluster, reader, sizeClass, peers);
      }
    }
  }

  /** The last executor reads a block of the second owner, for classes to be loaded. */
  private static void warmUp(final Cluster cluster) {
    Cluster.read(cluster.executor(cluster.executors().size() - 1), firstBlock(cluster, 1));
  }

  private static List<BlockSource> firstBlock(final Cluster cluster, final int owner) {
    final BlockSource first = cluster.sources(0, 0).get(owner);
    return List.of(
        new BlockSource(
            first.executorId(),
            first.location(),
            first.host(),
            first.address(),
            first.blocks().subList(0, 1)));
  }

  /** Map outputs that the reader finds on its own node. */
  private static long inPlace(final Cluster.Executor reader, final Cluster cluster) {
    return cluster.sources(0, 0).stream()
        .filter(it -> it.location().bootId().equals(reader.node().location().bootId()))
        .mapToLong(it -> it.blocks().size())
        .sum();
  }

  /** The first task of an executor; returns how many it had connected to at its first block. */
  private static long contact(final Cluster cluster, final Cluster.Executor reader) {
    try (Fetch fetcher =
        Cluster.fetcher(reader, cluster.sources(0, Math.min(8, cluster.executors().size() - 1)))) {
      assertThat(fetcher.next()).isTrue();
      final long connects = reader.channel().connects();
      int blocks = 1;
      while (fetcher.next()) {
        blocks++;
      }
      assertThat(blocks).isEqualTo(MAPS);
      return connects;
    }
  }

  /** What a task's thread does from its list of blocks to its first one, with all connected. */
  private static double planMicros(final Cluster cluster, final Cluster.Executor reader) {
    final List<BlockSource> sources = cluster.sources(0, 0);
    return Usage.cpuMicros(
        () -> {
          try (Fetch fetcher = Cluster.fetcher(reader, sources)) {
            assertThat(fetcher.next()).isTrue();
          }
        });
  }

  private static void fetch(
      final Cluster cluster, final Cluster.Executor reader, final int sizeClass, final int peers) {
    settle(cluster);
    final long questions = reader.channel().questions();
    final long control = reader.channel().bytes();
    final long bytes = Cluster.read(reader, cluster.sources(sizeClass, 5));
    assertThat(bytes).isEqualTo((long) MAPS * Cluster.CLASSES[sizeClass]);
    settle(cluster);
    final long asked = reader.channel().questions() - questions;
    Rows.write(
        "case",
        "fetch",
        "executors",
        cluster.executors().size(),
        "peers",
        peers,
        "block_bytes",
        Cluster.CLASSES[sizeClass],
        "blocks",
        MAPS,
        "questions",
        asked,
        "control_bytes",
        reader.channel().bytes() - control);
    assertThat(asked)
        .as("OPEN and CLOSE of each window")
        .isBetween(2L * peers, 2L * windows(cluster, reader, sizeClass));
  }

  /**
   * Waits until nothing is left of what tasks requested that stopped early. The transfers come
   * first: no other figure shows those of which no owner has heard yet, and a later task would join
   * them instead of asking.
   */
  private static void settle(final Cluster cluster) {
    TestNodes.eventually(
        "no transfer is left",
        () -> cluster.executors().stream().allMatch(it -> TestNodes.transfers(it.node()) == 0));
    TestNodes.eventually(
        "nothing is under way",
        () ->
            cluster.executors().stream()
                .allMatch(
                    it ->
                        it.channel().underWay() == 0
                            && it.engine().pending() == 0
                            && it.node().stats().leases().open() == 0
                            && it.node().stats().receiveBuffers().slabs() == 0));
  }

  /** At most, as windows are cut by number and by bytes, and by what others leave of the latter. */
  private static long windows(
      final Cluster cluster, final Cluster.Executor reader, final int sizeClass) {
    final long bytes = (long) MAPS * Cluster.CLASSES[sizeClass];
    final long perBlocks = MAPS / 1024 + 1;
    return cluster.remoteOwners(reader) + perBlocks + 4 * (bytes / (24L << 20) + 1);
  }

  @ParameterizedTest
  @MethodSource("sizes")
  void anOwnerServesEveryExecutor(final int size) {
    try (Cluster cluster = cluster(size, 1)) {
      final Cluster.Executor owner = cluster.executor(size - 1);
      final List<BlockSource> one = firstBlock(cluster, 0);
      Cluster.read(cluster.executor(0), one); // Loads classes.
      final int warm = Math.min(1, cluster.remoteOwners(cluster.executor(0)));
      final Usage before = Usage.now();
      int readers = 0;
      for (final Cluster.Executor reader : cluster.executors()) {
        if (cluster.remoteOwners(reader) > 0) {
          Cluster.read(reader, one);
          readers++;
        }
      }
      final Usage after = Usage.now();
      Rows.write(
          "case",
          "owner",
          "executors",
          size,
          "nodes",
          nodes(size),
          "peers",
          readers,
          "connections",
          owner.node().stats().peers().readers(),
          "endpoints",
          owner.engine().endpoints(),
          "threads_more",
          after.threads() - before.threads(),
          "pair_heap_bytes",
          readers == 0 ? 0 : (after.heap() - before.heap()) / (readers - warm));
      assertThat(owner.node().stats().peers().readers()).isEqualTo(readers);
      assertThat(after.threads()).as("no thread for a reader").isLessThan(before.threads() + 10);
    }
  }

  @ParameterizedTest
  @MethodSource("sizes")
  void whoReadsFewConnectsToFew(final int size) {
    final int owners = Math.min(FEW, size);
    try (Cluster cluster = cluster(size, owners)) {
      final Cluster.Executor reader = cluster.executor(0);
      Cluster.read(reader, cluster.sources(0, 0));
      Rows.write(
          "case", "few",
          "executors", size,
          "nodes", nodes(size),
          "peers", cluster.remoteOwners(reader),
          "connections", reader.channel().links());
      assertThat(reader.channel().connects()).isEqualTo(cluster.remoteOwners(reader));
    }
  }

  /** The catalog's share of a map output all of whose blocks have bytes. */
  @Test
  void aMapOutputTakesEightBytesOfItsOwnersCatalogForEachBlock() {
    final UnsafeBuffer memory = new UnsafeBuffer(ByteBuffer.allocateDirect(PARTITIONS));
    final int outputs = 20;
    try (ShuffleNode node = TestNodes.start(base, "1")) {
      final long[] used = new long[2];
      for (int round = 0; round < 2; round++) {
        final int partitions = round == 0 ? 1 : PARTITIONS;
        for (int map = 0; map < outputs; map++) {
          write(node, round, map, new Dense(partitions, memory));
        }
        used[round] = node.stats().poolUsedBytes();
        node.unregisterShuffle(round);
        TestNodes.eventually("it is freed", () -> node.stats().poolUsedBytes() == 0);
      }
      final double each = (double) (used[1] - used[0]) / outputs / PARTITIONS;
      Rows.write("case", "catalog", "partitions", PARTITIONS, "bytes_per_block", each - 1);
      assertThat(each).as("its byte, and what the catalog says of it").isLessThan(40);
    }
  }

  private static void write(
      final ShuffleNode node, final int shuffle, final int map, final Dense output) {
    try (MapOutput writer = node.newMapOutput(shuffle, map, output.partitions(), Tier.HOST, null)) {
      writer.append(output);
      writer.commit();
    } catch (final IOException e) {
      throw new UncheckedIOException(e); // It has no files.
    }
  }

  /** A byte in each block. */
  private record Dense(int partitions, UnsafeBuffer memory) implements PackSource {
    @Override
    public void forEachChunk(final int partition, final ExtentConsumer consumer) {
      consumer.extent(memory.addressOffset() + partition, 1);
    }
  }
}
