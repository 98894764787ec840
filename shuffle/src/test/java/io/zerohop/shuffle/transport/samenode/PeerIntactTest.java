package io.zerohop.shuffle.transport.samenode;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.zerohop.device.Leaks;
import io.zerohop.device.PeerAccess;
import io.zerohop.device.Topology;
import io.zerohop.device.exchange.PeerLink;
import io.zerohop.device.exchange.SegmentServer;
import io.zerohop.device.exchange.SegmentTable;
import io.zerohop.device.exchange.SocketFolder;
import io.zerohop.device.posix.Clock;
import io.zerohop.shuffle.TestNodes;
import io.zerohop.shuffle.block.Location;
import io.zerohop.shuffle.catalog.BatchImage;
import io.zerohop.shuffle.catalog.Catalog;
import io.zerohop.shuffle.catalog.CatalogView.ShuffleView;
import io.zerohop.shuffle.catalog.EntryCursor;
import io.zerohop.shuffle.catalog.LaneTable.LanePool;
import io.zerohop.shuffle.catalog.RootSegment;
import io.zerohop.shuffle.conf.Config;
import io.zerohop.shuffle.pool.Devices;
import io.zerohop.shuffle.pool.Pool;
import io.zerohop.shuffle.pool.Reclaimer;
import io.zerohop.shuffle.pool.Region;
import io.zerohop.shuffle.pool.SegmentMemory;
import io.zerohop.shuffle.pool.Tier;
import io.zerohop.shuffle.pool.Tiers;
import io.zerohop.shuffle.transport.ContactListener;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** When what was read of an owner was right although the connection to it is lost. */
class PeerIntactTest {
  private static final long INCARNATION = 5;
  private static final Duration LIMIT = Duration.ofSeconds(30);
  private static final int BYTES = 4096;
  private static final int SHUFFLE = 1;
  private static final long MAP = 2;
  private static final Topology.View NO_GPU = new Topology.View("owner", "", "");

  @TempDir private java.nio.file.Path base;
  private final Leaks leaks = new Leaks();
  private final Devices devices = new Devices(null);
  private final RootSegment root = new RootSegment(devices.host(), INCARNATION);
  private final Tiers tiers =
      new Tiers(
          new Pool(
              devices.host(),
              Tier.HOST,
              PeerAccess.READ,
              root,
              Config.defaults().with("pool.size", 1 << 20).with("segment.size", 1 << 20),
              Clock.system()),
          null);
  private SocketFolder folder;
  private SegmentServer server;
  private PeerDirectory peers;
  private Peer peer;
  private LanePool.Lease lease;

  @BeforeEach
  void connect() {
    folder = SocketFolder.open(base.resolve("s"), "app");
    server =
        new SegmentServer(
            folder,
            "owner",
            TestNodes.SECRET,
            new SharedMemory(root, tiers, NO_GPU, new Keeping(Clock.system()), cause -> {}),
            SegmentServer.Limits.DEFAULT);
    server.start();
    peers = directory("reader");
    peer =
        peers.connect(
            new Location(Location.currentBootId(""), folder.identity(), INCARNATION, 0, "owner"),
            "owner",
            false);
    lease = peer.lanes().take(LIMIT, () -> false);
    assertThat(peer.intact()).isTrue();
  }

  @AfterEach
  void noLeaks() {
    lease.close();
    peers.close();
    server.close();
    folder.close();
    tiers.close();
    root.close();
    devices.close();
    leaks.check();
  }

  /** The connection ends and there is no socket, which says nothing about the process. */
  private void vanish() {
    server.close();
    TestNodes.eventually("disconnected", () -> !peer.alive());
    assertThat(server.socket()).doesNotExist();
  }

  @Test
  void anOwnerThatVanishedMayLiveOn() {
    vanish();
    assertThat(peer.intact()).isFalse();
  }

  @Test
  void anOwnerThatFrozeItsMemoryBeforeMayBeTrusted() {
    root.lanes().freeze();
    vanish();
    assertThat(peer.intact()).isTrue();
  }

  /**
   * It frees what it has before this process sees the closed socket, and unpublishes nothing: a
   * lease can be had, and what is known of its catalog counts.
   */
  @Test
  void whatAnOwnerFreesThatEndedIsReadUntilItsEndIsSeen() {
    final Pool pool = tiers.of(Tier.HOST);
    final Catalog catalog = new Catalog(devices.host(), root, pool, new Reclaimer(root.lanes()));
    final BatchImage image = new BatchImage(1, false);
    image.add(BYTES, 0);
    image.place(pool.allocate(BYTES));
    catalog.publish(SHUFFLE, MAP, catalog.registration(SHUFFLE), 1, List.of(image), true);
    assertThat(isFound()).isTrue();
    lease.close();
    final int mappings = peer.mappings();
    final CountDownLatch watch = holdTheWatch();
    try {
      root.lanes().freeze();
      root.end();
      server.close();
      catalog.unregisterAll();
      pool.closeEmpty();
      assertThat(pool.stats().segments()).as("nothing is left at its owner").isZero();
      assertThat(peer.sweep()).isFalse();
      assertThat(peer.alive()).as("nobody has seen it").isTrue();
      lease = peer.lanes().take(LIMIT, () -> false);
      assertThat(lease).isNotNull();
      assertThat(peer.mappings()).as("what the lease is for is mapped").isEqualTo(mappings);
      assertThat(isFound()).isTrue();
    } finally {
      watch.countDown();
    }
    lease.close();
    TestNodes.eventually("all is unmapped once its end is seen", peer::sweep);
    assertThat(peer.mappings()).isZero();
  }

  private boolean isFound() {
    final ShuffleView shuffle = peer.catalog().shuffle(SHUFFLE);
    return shuffle != null && shuffle.find(MAP, new EntryCursor());
  }

  @Test
  void aTaskThatIsKilledWhileItConnectsSaysNothingOfThePeer() {
    final Location owner =
        new Location(Location.currentBootId(""), folder.identity(), INCARNATION, 0, "owner");
    try (PeerDirectory others = directory("other")) {
      Thread.currentThread().interrupt();
      assertThatThrownBy(() -> others.connect(owner, "owner", false))
          .isInstanceOf(RuntimeException.class);
      assertThat(Thread.interrupted()).isTrue();
      assertThat(others.connect(owner, "owner", false).alive()).isTrue();
    }
  }

  private PeerDirectory directory(final String reader) {
    return new PeerDirectory(
        devices,
        folder,
        new Location(Location.currentBootId(""), folder.identity(), 7, 0, reader),
        NO_GPU,
        Topology.NONE,
        TestNodes.SECRET,
        Config.defaults(),
        ContactListener.NONE,
        Clock.system());
  }

  /**
   * Keeps the thread that watches links from noticing anything.
   *
   * @return lets it go on
   */
  private CountDownLatch holdTheWatch() {
    final CountDownLatch held = new CountDownLatch(1);
    final CountDownLatch goOn = new CountDownLatch(1);
    try (SegmentServer other =
        new SegmentServer(
            folder,
            "other",
            SegmentTable.SECRET,
            new SegmentTable(),
            SegmentServer.Limits.DEFAULT)) {
      other.start();
      PeerLink.connect(other.socket(), "reader", "other", SegmentTable.SECRET, LIMIT)
          .onClosed(
              () -> {
                held.countDown();
                await(goOn);
              });
    }
    await(held);
    return goOn;
  }

  private static void await(final CountDownLatch latch) {
    try {
      assertThat(latch.await(LIMIT.toSeconds(), TimeUnit.SECONDS)).isTrue();
    } catch (final InterruptedException e) {
      throw new AssertionError(e);
    }
  }

  /** The owner drops the lease and writes there, all before this process sees the closed socket. */
  @Test
  void whatIsOverwrittenBeforeTheCloseIsSeenIsNotBelieved() {
    final Pool pool = tiers.of(Tier.HOST);
    final Reclaimer reclaimer = new Reclaimer(root.lanes());
    final Region first = pool.allocate(BYTES);
    first.memory().buffer().setMemory(first.offset(), BYTES, (byte) 1);
    final SegmentMemory mapped = peer.blockSegment(first.memory().id());
    reclaimer.retire(List.of(first));
    assertThat(reclaimer.waitingRegions()).as("held by the lease").isEqualTo(1);
    final CountDownLatch watch = holdTheWatch();
    try {
      server.close();
      reclaimer.poll();
      final Region second = pool.allocate(BYTES);
      second.memory().buffer().setMemory(second.offset(), BYTES, (byte) 2);
      assertThat(peer.alive()).as("nobody has seen it").isTrue();
      assertThat(mapped.buffer().getByte(second.offset())).as("read in place").isEqualTo((byte) 2);
      assertThat(second.offset()).isEqualTo(first.offset());
      assertThat(peer.intact()).isFalse();
      assertThat(peer.lanes().take(LIMIT, () -> false)).as("a lease on nothing").isNull();
      second.release();
    } finally {
      watch.countDown();
    }
  }
}
