package io.zerohop.shuffle.transport.samenode;

import static org.assertj.core.api.Assertions.assertThat;

import io.zerohop.device.Leaks;
import io.zerohop.device.PeerAccess;
import io.zerohop.device.SegmentHandle;
import io.zerohop.device.TestClock;
import io.zerohop.device.Topology;
import io.zerohop.device.exchange.PeerLink.Loan;
import io.zerohop.device.exchange.SegmentServer;
import io.zerohop.device.exchange.SegmentServer.PeerInfo;
import io.zerohop.device.exchange.SegmentServer.SegmentDirectory;
import io.zerohop.device.exchange.SocketFolder;
import io.zerohop.device.posix.Clock;
import io.zerohop.device.posix.Descriptor;
import io.zerohop.device.posix.FdHandle;
import io.zerohop.shuffle.TestNodes;
import io.zerohop.shuffle.block.Location;
import io.zerohop.shuffle.catalog.RootSegment;
import io.zerohop.shuffle.conf.Config;
import io.zerohop.shuffle.pool.Devices;
import io.zerohop.shuffle.pool.Pool;
import io.zerohop.shuffle.pool.Region;
import io.zerohop.shuffle.pool.Tier;
import io.zerohop.shuffle.pool.Tiers;
import java.nio.file.Path;
import java.util.List;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** An executor that says of its segments that they are smaller than their files. */
@Timeout(60)
class KeptSizesTest {
  private static final String SOCKET = "1-0000000000000007";
  private static final int SEGMENT = 1 << 20;

  @TempDir private Path base;
  private final Leaks leaks = new Leaks();
  private final Devices devices = new Devices(null);
  private final RootSegment root = new RootSegment(devices.host(), 7);
  private final Tiers tiers =
      new Tiers(
          new Pool(
              devices.host(),
              Tier.HOST,
              PeerAccess.READ,
              root,
              Config.defaults().with("pool.size", 4 * SEGMENT).with("segment.size", SEGMENT),
              Clock.system()),
          null);
  private final Owner owner = new Owner();
  private SocketFolder folder;
  private SegmentServer server;
  private KeptExecutor kept;

  /** Says of each segment that it is so much smaller. */
  private volatile int less;

  @BeforeEach
  void connect() {
    folder = SocketFolder.open(base.resolve("s"), "app");
    server =
        new SegmentServer(folder, SOCKET, TestNodes.SECRET, owner, SegmentServer.Limits.DEFAULT);
    server.start();
    kept =
        KeptExecutor.connect(
            folder, SOCKET, TestNodes.SECRET, devices.host(), Location.KEEPER, TestClock.running());
  }

  @AfterEach
  void noLeaks() {
    kept.close();
    server.close();
    folder.close();
    tiers.close();
    root.close();
    devices.close();
    leaks.check();
  }

  /** Its limit counts what the owner says, and memory is what the file has. */
  @Test
  void aSegmentWhoseFileIsLargerThanItsOwnerSaidIsNotHeld() {
    less = SEGMENT / 2;
    final Region lied = tiers.host().allocate(100);
    TestNodes.eventually(
        "it is refused", () -> kept.round(Long.MAX_VALUE) == 0 && kept.refusedSegments() > 0);
    assertThat(kept.heldBytes()).isZero();
    assertThat(owner.unkept).containsExactly(lied.memory().id());
    assertThat(kept.isRefused()).as("more room would not help").isFalse();
    less = 0;
    final List<Region> more = List.of(tiers.host().allocate(SEGMENT));
    TestNodes.eventually(
        "others are held", () -> kept.round(Long.MAX_VALUE) == 0 && kept.heldBytes() > 0);
    assertThat(kept.heldBytes()).isEqualTo(SEGMENT);
    assertThat(kept.refusedSegments()).isEqualTo(1);
    lied.release();
    more.forEach(Region::release);
  }

  /** The service of the executor, which tells lies to keepers. */
  private final class Owner implements SegmentDirectory {
    private final Keeping keeping = new Keeping(Clock.system());
    private final SharedMemory memory =
        new SharedMemory(root, tiers, new Topology.View("1", "", ""), keeping, cause -> {});
    private final Set<Long> unkept = ConcurrentHashMap.newKeySet();

    @Override
    public SegmentHandle keep(final PeerInfo peer, final long segmentId) {
      assertThat(Location.keeperPortOf(peer.name())).isZero();
      final SegmentHandle handle = memory.keep(peer, segmentId);
      if (handle == null) {
        return null;
      }
      try (handle) {
        return new FdHandle(Descriptor.duplicate(handle.fd()), handle.bytes() - less);
      }
    }

    @Override
    public void kept(final PeerInfo peer, final long segmentId) {
      memory.kept(peer, segmentId);
    }

    @Override
    public void unkept(final PeerInfo peer, final long segmentId) {
      unkept.add(segmentId);
      memory.unkept(peer, segmentId);
    }

    @Override
    public byte[] connected(final PeerInfo peer) {
      return memory.connected(peer);
    }

    @Override
    public SegmentHandle export(final long segmentId) {
      return memory.export(segmentId);
    }

    @Override
    public Loan lend(final PeerInfo peer, final long bytes) {
      return null;
    }

    @Override
    public void returned(final PeerInfo peer, final long segmentId) {}

    @Override
    public void failed(final Throwable cause) {
      memory.failed(cause);
    }

    @Override
    public void disconnected(final PeerInfo peer) {
      memory.disconnected(peer);
    }
  }
}
