package io.zerohop.shuffle.bench;

import io.zerohop.device.PeerAccess;
import io.zerohop.device.Segment;
import io.zerohop.device.host.HostDevice;
import io.zerohop.device.posix.Clock;
import io.zerohop.shuffle.catalog.BatchImage;
import io.zerohop.shuffle.catalog.Catalog;
import io.zerohop.shuffle.catalog.CatalogView;
import io.zerohop.shuffle.catalog.CatalogView.ShuffleView;
import io.zerohop.shuffle.catalog.EntryCursor;
import io.zerohop.shuffle.catalog.LaneTable.LanePool;
import io.zerohop.shuffle.catalog.RootSegment;
import io.zerohop.shuffle.catalog.RootSegment.RootLayout;
import io.zerohop.shuffle.catalog.RootSegment.RootView;
import io.zerohop.shuffle.conf.Config;
import io.zerohop.shuffle.pool.Pool;
import io.zerohop.shuffle.pool.Reclaimer;
import io.zerohop.shuffle.pool.SegmentIds;
import io.zerohop.shuffle.pool.SegmentMemory;
import io.zerohop.shuffle.pool.Tier;
import java.time.Duration;
import java.util.List;
import java.util.Random;
import java.util.concurrent.TimeUnit;
import org.openjdk.jmh.annotations.Benchmark;
import org.openjdk.jmh.annotations.BenchmarkMode;
import org.openjdk.jmh.annotations.Fork;
import org.openjdk.jmh.annotations.Measurement;
import org.openjdk.jmh.annotations.Mode;
import org.openjdk.jmh.annotations.OperationsPerInvocation;
import org.openjdk.jmh.annotations.OutputTimeUnit;
import org.openjdk.jmh.annotations.Param;
import org.openjdk.jmh.annotations.Scope;
import org.openjdk.jmh.annotations.Setup;
import org.openjdk.jmh.annotations.State;
import org.openjdk.jmh.annotations.TearDown;
import org.openjdk.jmh.annotations.Warmup;

/**
 * Blocks that one thread of a same-node peer looks up in a second, in memory mapped from the
 * owner's descriptors: a lease for each window of {@value #WINDOW} blocks, then slot, entry, extent
 * and address of each. {@link Benchmarks} runs it.
 */
@State(Scope.Thread)
@BenchmarkMode(Mode.Throughput)
@OutputTimeUnit(TimeUnit.SECONDS)
@Fork(1)
@Warmup(iterations = 3, time = 1)
@Measurement(iterations = 5, time = 1)
public class CatalogLookupBenchmark {
  static final int WINDOW = 1000;
  private static final int SHUFFLE = 1;
  private static final long INCARNATION = 42;

  /** Map outputs; each task reads one partition of all of them. */
  @Param({"1000"})
  private int maps;

  /** Partitions of each map output, two thirds of which are not empty. */
  @Param({"200", "3000"})
  private int partitions;

  private HostDevice device;
  private RootSegment root;
  private Pool pool;
  private Reclaimer reclaimer;
  private Catalog catalog;
  private final SegmentMemory[] mapped = new SegmentMemory[SegmentIds.MAX_SLOTS];
  private CatalogView view;
  private LanePool lanes;
  private final EntryCursor cursor = new EntryCursor();
  private int partition;

  @Setup
  public void setUp() {
    device = new HostDevice();
    root = new RootSegment(device, INCARNATION);
    pool =
        new Pool(
            device,
            Tier.HOST,
            PeerAccess.READ,
            root,
            Config.defaults().with("pool.size", 512L << 20).with("segment.size", 128L << 20),
            Clock.system());
    reclaimer = new Reclaimer(root.lanes());
    catalog = new Catalog(device, root, pool, reclaimer);
    final Random random = new Random(1);
    for (int map = 0; map < maps; map++) {
      final BatchImage image = new BatchImage(partitions, true);
      for (int i = 0; i < partitions; i++) {
        image.add(random.nextInt(3) == 0 ? 0 : 1 + random.nextInt(50), random.nextInt());
      }
      image.place(pool.allocate(image.bytes()));
      catalog.publish(
          SHUFFLE, map, catalog.registration(SHUFFLE), partitions, List.of(image), true);
    }
    final Segment mappedRoot = device.map(root.memory().segment().export(), "a peer");
    mapped[0] = new SegmentMemory(root.memory().id(), mappedRoot);
    view =
        new CatalogView(
            new RootView(mapped[0], INCARNATION, "bench"), this::segment, "bench", INCARNATION);
    final int block = root.lanes().connect();
    lanes =
        new LanePool(
            RootLayout.lanes(mapped[0]),
            block,
            root.lanes().generation(block),
            () -> true,
            Clock.system());
  }

  private SegmentMemory segment(final long id) {
    final int slot = SegmentIds.slot(id);
    if (mapped[slot] == null || mapped[slot].id() != id) {
      mapped[slot] = new SegmentMemory(id, device.map(pool.export(id), "a peer", PeerAccess.READ));
    }
    return mapped[slot];
  }

  @Benchmark
  @OperationsPerInvocation(WINDOW)
  public long window() {
    long sum = 0;
    try (LanePool.Lease lease = lanes.take(Duration.ofSeconds(1), () -> false)) {
      final ShuffleView shuffle = view.shuffle(SHUFFLE);
      for (int map = 0; map < WINDOW; map++) {
        if (shuffle.find(map, cursor) && shuffle.isReady(cursor)) {
          for (int batch = 0; batch < cursor.batches(); batch++) {
            if (cursor.extent(batch, partition)) {
              sum += cursor.address(segment(cursor.segmentId())) + cursor.length();
            }
          }
        }
      }
      sum += lease.hashCode();
    }
    partition = (partition + 1) % partitions;
    return sum;
  }

  @TearDown
  public void tearDown() {
    for (final SegmentMemory memory : mapped) {
      if (memory != null) {
        memory.segment().close();
      }
    }
    catalog.unregisterAll();
    reclaimer.poll();
    pool.close();
    root.close();
    device.close();
  }
}
