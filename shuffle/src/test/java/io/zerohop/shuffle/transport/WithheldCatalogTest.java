package io.zerohop.shuffle.transport;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.junit.jupiter.api.Assertions.assertTimeoutPreemptively;

import io.zerohop.device.Leaks;
import io.zerohop.device.PeerAccess;
import io.zerohop.device.SegmentHandle;
import io.zerohop.device.Topology;
import io.zerohop.device.exchange.PeerLink;
import io.zerohop.device.exchange.SegmentServer;
import io.zerohop.device.exchange.SegmentServer.PeerInfo;
import io.zerohop.device.exchange.SegmentServer.SegmentDirectory;
import io.zerohop.device.exchange.SocketFolder;
import io.zerohop.device.posix.Clock;
import io.zerohop.device.posix.PosixException;
import io.zerohop.shuffle.ShuffleNode;
import io.zerohop.shuffle.TestBlocks;
import io.zerohop.shuffle.TestNodes;
import io.zerohop.shuffle.block.BlockPath;
import io.zerohop.shuffle.block.BlockSource;
import io.zerohop.shuffle.block.Location;
import io.zerohop.shuffle.catalog.BatchImage;
import io.zerohop.shuffle.catalog.Catalog;
import io.zerohop.shuffle.catalog.RootSegment;
import io.zerohop.shuffle.conf.Config;
import io.zerohop.shuffle.fetch.BlockFetchException;
import io.zerohop.shuffle.pool.Devices;
import io.zerohop.shuffle.pool.Pool;
import io.zerohop.shuffle.pool.Reclaimer;
import io.zerohop.shuffle.pool.Tier;
import io.zerohop.shuffle.pool.Tiers;
import io.zerohop.shuffle.transport.samenode.Keeping;
import io.zerohop.shuffle.transport.samenode.SharedMemory;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/**
 * An owner that can hand out its root, and its catalog perhaps, since it is out of descriptors,
 * say.
 */
class WithheldCatalogTest {
  private static final long INCARNATION = 5;
  private static final int PARTITIONS = 40;
  private static final int MOST = 300;
  private static final Topology.View NO_GPU = new Topology.View("owner", "", "");

  @TempDir private java.nio.file.Path base;
  private final Leaks leaks = new Leaks();
  private final Devices devices = new Devices(null);
  private final RootSegment root = new RootSegment(devices.host(), INCARNATION);
  private final Pool pool =
      new Pool(
          devices.host(),
          Tier.HOST,
          PeerAccess.READ,
          root,
          Config.defaults().with("pool.size", 16 << 20).with("segment.size", 1 << 20),
          Clock.system());
  private final Tiers tiers = new Tiers(pool, null);
  private final Reclaimer reclaimer = new Reclaimer(root.lanes());
  private final Catalog catalog = new Catalog(devices.host(), root, pool, reclaimer);
  private SocketFolder folder;
  private SegmentServer server;
  private ShuffleNode reader;

  /** Whether the owner ends the connection of who asks for more than it hands out. */
  private volatile boolean ending;

  /** Whether the owner hands out its catalog. */
  private volatile boolean listing;

  private final AtomicInteger asked = new AtomicInteger();

  @BeforeEach
  void start() {
    reader = TestNodes.start(base.resolve("s"), "reader");
    folder = SocketFolder.open(base.resolve("s"), "app-test");
    server =
        new SegmentServer(
            folder,
            "owner",
            TestNodes.SECRET,
            new Withholding(
                new SharedMemory(root, tiers, NO_GPU, new Keeping(Clock.system()), cause -> {}),
                root.memory().id()),
            SegmentServer.Limits.DEFAULT);
    server.start();
  }

  @AfterEach
  void noLeaks() {
    TestNodes.assertNothingHeld(reader);
    reader.close();
    server.close();
    folder.close();
    catalog.unregisterAll();
    reclaimer.drop();
    tiers.close();
    root.close();
    devices.close();
    leaks.check();
  }

  /** Cannot be sent, and cannot be closed either. */
  private static final class Broken implements SegmentHandle {
    @Override
    public Kind kind() {
      throw new IllegalStateException("on purpose");
    }

    @Override
    public int fd() {
      return -1;
    }

    @Override
    public long bytes() {
      return 0;
    }

    @Override
    public byte[] opaque() {
      return new byte[0];
    }

    @Override
    public void close() {
      throw new IllegalStateException("on purpose");
    }
  }

  private final class Withholding implements SegmentDirectory {
    private final SharedMemory memory;
    private final long rootSegment;

    Withholding(final SharedMemory memory, final long rootSegment) {
      this.memory = memory;
      this.rootSegment = rootSegment;
    }

    @Override
    public byte[] connected(final PeerInfo peer) {
      return memory.connected(peer);
    }

    @Override
    public SegmentHandle export(final long segmentId) {
      if (segmentId == rootSegment) {
        return memory.export(segmentId);
      }
      final boolean isFirst = asked.getAndIncrement() % 2 == 0;
      if (listing && isFirst) {
        return memory.export(segmentId);
      }
      if (ending) {
        return new Broken();
      }
      throw new PosixException("fcntl(F_DUPFD_CLOEXEC)", PosixException.EMFILE, "on purpose");
    }

    @Override
    public PeerLink.Loan lend(final PeerInfo peer, final long bytes) {
      return memory.lend(peer, bytes);
    }

    @Override
    public void returned(final PeerInfo peer, final long segmentId) {
      memory.returned(peer, segmentId);
    }

    @Override
    public void failed(final Throwable cause) {
      memory.failed(cause);
    }

    @Override
    public void disconnected(final PeerInfo peer) {
      memory.disconnected(peer);
    }
  }

  @Test
  void blocksWhoseCatalogCannotBeMappedAreStaged() {
    final BlockSource source = published();
    final FakeStaging staging = new FakeStaging(2, MOST);
    for (int i = 0; i < 3; i++) {
      assertThat(TestNodes.fetchAndCheck(reader, staging, 2, MOST, source))
          .isEqualTo(Map.of(BlockPath.STAGED, source.blocks().size()));
    }
    staging.assertAllReleased();
    assertThat(root.lanes().connected()).as("connected once, and still").isEqualTo(1);
    assertThat(reader.stats().peers().readable()).isEqualTo(1);
  }

  /** One that is killed does so once; then its keeper is read, if there is one. */
  @Test
  void anOwnerOfKeptBlocksThatEndsEachConnectionIsNotAskedForEver() {
    ending = true;
    final BlockSource kept = kept(published());
    assertTimeoutPreemptively(
        Duration.ofSeconds(30),
        () ->
            assertThatThrownBy(
                    () -> TestNodes.fetchAndCheck(reader, new FakeStaging(2, MOST), 2, MOST, kept))
                .isInstanceOf(BlockFetchException.class)
                .hasMessageContaining("could not be looked up"));
    assertThat(asked).hasValue(2);
  }

  /** Its keeper may have what is listed and not mapped yet, as it has all else. */
  @Test
  void anOwnerOfKeptBlocksThatEndsBehindItsCatalogIsLookedForElsewhere() {
    ending = true;
    listing = true;
    final BlockSource kept = kept(published());
    final FakeStaging staging = new FakeStaging(2, MOST);
    assertThat(TestNodes.fetchAndCheck(reader, staging, 2, MOST, kept))
        .isEqualTo(Map.of(BlockPath.STAGED, kept.blocks().size()));
    staging.assertAllReleased();
    assertThat(asked).as("its catalog and a block, by each of two connections").hasValue(4);
  }

  private static BlockSource kept(final BlockSource there) {
    return new BlockSource(
        there.executorId(), there.location(), there.host(), there.address(), there.blocks(), true);
  }

  /** Each map output is in a segment of its own. */
  private BlockSource published() {
    for (int map = 0; map < 3; map++) {
      final BatchImage image = new BatchImage(PARTITIONS, false);
      for (int partition = 0; partition < PARTITIONS; partition++) {
        image.add(1, 0);
      }
      image.place(pool.allocate(2 << 20));
      catalog.publish(1, map, catalog.registration(1), PARTITIONS, List.of(image), true);
    }
    final Location location =
        new Location(Location.currentBootId(""), folder.identity(), INCARNATION, 0, "owner");
    return TestBlocks.source("owner", location, 1, 0, 3, 2, PARTITIONS, MOST);
  }
}
