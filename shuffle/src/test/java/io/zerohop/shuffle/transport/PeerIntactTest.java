package io.zerohop.shuffle.transport;

import static org.assertj.core.api.Assertions.assertThat;

import io.zerohop.device.Leaks;
import io.zerohop.device.Topology;
import io.zerohop.device.exchange.SegmentServer;
import io.zerohop.device.exchange.SocketFolder;
import io.zerohop.shuffle.Location;
import io.zerohop.shuffle.TestNodes;
import io.zerohop.shuffle.catalog.RootSegment;
import io.zerohop.shuffle.pool.Devices;
import io.zerohop.shuffle.pool.Pool;
import io.zerohop.shuffle.pool.Tier;
import io.zerohop.shuffle.pool.Tiers;
import java.time.Duration;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** When a lost connection means that the owner is dead, and when it does not. */
class PeerIntactTest {
  private static final long INCARNATION = 5;
  private static final Topology.View NO_GPU = new Topology.View("owner", "", "");

  @TempDir private java.nio.file.Path base;
  private final Leaks leaks = new Leaks();
  private final Devices devices = new Devices(null);
  private final RootSegment root = new RootSegment(devices.host(), INCARNATION);
  private final Tiers tiers =
      new Tiers(
          new Pool(devices.host(), Tier.HOST, root, 1 << 20, 1 << 20, Duration.ofMinutes(1)), null);
  private SocketFolder folder;
  private SegmentServer server;
  private PeerDirectory peers;
  private Peer peer;

  @BeforeEach
  void connect() {
    folder = SocketFolder.open(base.resolve("s"), "app");
    server =
        new SegmentServer(
            folder,
            "owner",
            TestNodes.SECRET,
            new SharedMemory(root, tiers, NO_GPU, cause -> {}),
            SegmentServer.Limits.DEFAULT);
    server.start();
    peers =
        new PeerDirectory(
            devices,
            folder,
            new Location(Location.currentBootId(), folder.identity(), 7, 0, "reader"),
            NO_GPU,
            TestNodes.config(base.resolve("s"), "reader").build());
    peer =
        peers.connect(
            new Location(Location.currentBootId(), folder.identity(), INCARNATION, 0, "owner"),
            "owner");
    assertThat(peer.intact()).isTrue();
  }

  @AfterEach
  void noLeaks() {
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
    TestNodes.eventually("disconnected", () -> !peer.connected());
    assertThat(server.socket()).doesNotExist();
  }

  @Test
  void anOwnerThatVanishedMayLiveOn() {
    vanish();
    assertThat(peer.intact()).isFalse();
  }

  @Test
  void anOwnerThatFrozeItsMemoryBeforeMayBeTrusted() {
    root.markFrozen();
    vanish();
    assertThat(peer.intact()).isTrue();
  }
}
