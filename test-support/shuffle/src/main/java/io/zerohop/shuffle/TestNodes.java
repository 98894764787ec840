package io.zerohop.shuffle;

import static org.assertj.core.api.Assertions.assertThat;

import io.zerohop.device.TestClock;
import io.zerohop.device.Topology;
import io.zerohop.shuffle.block.Block;
import io.zerohop.shuffle.block.BlockPath;
import io.zerohop.shuffle.block.BlockSource;
import io.zerohop.shuffle.conf.Config;
import io.zerohop.shuffle.fetch.Fetch;
import io.zerohop.shuffle.fetch.FetchedBlock;
import io.zerohop.shuffle.fetch.Fetches;
import io.zerohop.shuffle.transport.Transport.FallbackTransport;
import java.io.IOException;
import java.io.InputStream;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.EnumMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import java.util.function.BooleanSupplier;
import java.util.function.ToLongFunction;

/** Nodes, fetches and checks that tests share. */
public final class TestNodes {
  public static final byte[] SECRET =
      "an application's secret, of any length".getBytes(java.nio.charset.StandardCharsets.UTF_8);

  /** Size of the segments in GPU memory of {@link #linked} nodes. */
  public static final long LINKED_SEGMENT = 256 << 10;

  private static final int GPUS = 4;
  private static final Topology LINKED = links();
  private static final long EVENTUALLY_NANOS = TimeUnit.SECONDS.toNanos(30);

  private TestNodes() {}

  /**
   * Small pools; all else is what users have who set nothing, but for patience with slow machines.
   */
  public static ShuffleNode.Setup config(final java.nio.file.Path base, final String executorId) {
    return config(base, executorId, SECRET);
  }

  /** The same with another secret. */
  public static ShuffleNode.Setup config(
      final java.nio.file.Path base, final String executorId, final byte[] secret) {
    return new ShuffleNode.Setup(Config.defaults(), "app-test", executorId, secret)
        .set("socket.dir", base)
        .set("pool.size", 16L << 20)
        .set("device.pool.size", 16L << 20)
        .set("segment.size", 2L << 20)
        .set("device.segment.size", 2L << 20)
        .set("request.timeout", Duration.ofSeconds(20));
  }

  /**
   * A neighbour of others on one of four GPUs, which all have links to each other. Its outputs stay
   * where they are unless somebody needs the memory, and what is empty goes soon.
   *
   * @param pool bytes of its GPU memory for blocks, in small segments
   */
  public static ShuffleNode.Setup linked(
      final java.nio.file.Path base, final String executorId, final int gpu, final long pool) {
    return config(base, executorId)
        .neighbours()
        .gpu(uuid(gpu), LINKED)
        .set("device.pool.size", pool)
        .set("device.segment.size", LINKED_SEGMENT)
        .set("spill.idle", Duration.ofHours(1))
        .set("segment.idle", Duration.ofMillis(200));
  }

  private static String uuid(final int gpu) {
    return "GPU-" + gpu;
  }

  private static Topology links() {
    final List<Topology.Gpu> gpus = new ArrayList<>();
    final int[][] links = new int[GPUS][GPUS];
    final boolean[][] access = new boolean[GPUS][GPUS];
    for (int gpu = 0; gpu < GPUS; gpu++) {
      gpus.add(new Topology.Gpu(uuid(gpu), "0000:0" + gpu + ":00.0", ""));
      Arrays.fill(links[gpu], 1);
      Arrays.fill(access[gpu], true);
    }
    return new Topology(gpus, links, access);
  }

  public static ShuffleNode start(final java.nio.file.Path base, final String executorId) {
    return ShuffleNode.start(config(base, executorId));
  }

  /** Waits for something that another thread or process brings about. */
  public static void eventually(final String what, final BooleanSupplier condition) {
    final long deadline = System.nanoTime() + EVENTUALLY_NANOS;
    while (!condition.getAsBoolean()) {
      assertThat(System.nanoTime() - deadline).as(what).isNegative();
      LockSupport.parkNanos(TimeUnit.MILLISECONDS.toNanos(5));
    }
  }

  /** A node that holds nothing for anybody. */
  public static void assertNothingHeld(final ShuffleNode node) {
    eventually("all regions are freed", () -> node.stats().poolUsedBytes() == 0);
    // Who frees the last of them counts its lease as closed a moment later, and takes them off.
    eventually("all leases are closed", () -> node.stats().leases().open() == 0);
    eventually("no region waits", () -> retiredRegions(node) == 0);
    assertThat(Holdings.of(node).regions()).isZero();
    assertThat(outputs(node)).isZero();
    assertThat(writers(node)).isZero();
    assertThat(node.stats().receiveBuffers().bytes()).isZero();
  }

  /** Map outputs of a node that can be read. */
  public static int outputs(final ShuffleNode node) {
    return Holdings.of(node).outputs();
  }

  /** Map outputs of a node that are being written. */
  public static int writers(final ShuffleNode node) {
    return Holdings.of(node).writers();
  }

  /** Blocks of other nodes that a node asked for and that have not ended. */
  public static int transfers(final ShuffleNode node) {
    return Holdings.of(node).transfers();
  }

  /** Regions of a node that only wait for readers. */
  public static int retiredRegions(final ShuffleNode node) {
    return Holdings.of(node).retiredRegions();
  }

  /**
   * The same, after what a reader that is gone has left: it goes when its time has passed, within
   * half a minute by the clock.
   */
  public static void assertNothingHeld(final ShuffleNode node, final TestClock clock) {
    for (int second = 0; second < 30 && node.stats().poolUsedBytes() > 0; second++) {
      LockSupport.parkNanos(TimeUnit.MILLISECONDS.toNanos(5));
      clock.advance(Duration.ofSeconds(1));
    }
    assertNothingHeld(node);
  }

  /** Fetches everything and checks every byte; returns blocks by path. */
  public static Map<BlockPath, Integer> fetchAndCheck(
      final ShuffleNode node,
      final FallbackTransport staged,
      final int batches,
      final int most,
      final BlockSource... sources) {
    return fetchAndCheck(node, staged, batches, most, Block::bytes, sources);
  }

  /**
   * The same where other bytes are moved than blocks have.
   *
   * @param moved how many bytes of a block are
   */
  public static Map<BlockPath, Integer> fetchAndCheck(
      final ShuffleNode node,
      final FallbackTransport staged,
      final int batches,
      final int most,
      final ToLongFunction<Block> moved,
      final BlockSource... sources) {
    final Map<BlockPath, Integer> counts = new EnumMap<>(BlockPath.class);
    final List<Block> left = new ArrayList<>();
    for (final BlockSource source : sources) {
      left.addAll(source.blocks());
    }
    try (Fetch fetcher = node.fetch(List.of(sources), staged, quiet(), () -> false)) {
      while (fetcher.next()) {
        final FetchedBlock fetched = fetcher.block();
        final Block block = fetched.block();
        assertThat(left.remove(block)).as("%s is wanted, once", block).isTrue();
        final byte[] expected =
            TestBlocks.block(block.shuffleId(), block.mapId(), batches, block.partition(), most);
        assertThat(fetched.bytes()).isEqualTo(moved.applyAsLong(block));
        assertThat(read(fetched)).as("%s", block).isEqualTo(expected);
        counts.merge(fetched.path(), 1, Integer::sum);
      }
    }
    assertThat(left).isEmpty();
    return counts;
  }

  public static byte[] read(final FetchedBlock block) {
    try (InputStream in = block.stream()) {
      return in.readAllBytes();
    } catch (final IOException e) {
      throw new AssertionError(e);
    }
  }

  /** Reads until there is no more, or another thread closes the fetcher. */
  public static void readToTheEndOrClose(final Fetch fetcher) {
    try {
      while (fetcher.next()) {
        Thread.onSpinWait();
      }
    } catch (final IllegalStateException e) {
      assertThat(fetcher.isClosed()).isTrue();
    }
  }

  public static Fetches.Listener quiet() {
    return new Fetches.Listener() {};
  }

  /** A staged transport that must not be asked. */
  public static FallbackTransport noStaging() {
    return (source, blocks, sink) -> {
      throw new AssertionError("staged: " + blocks);
    };
  }
}
