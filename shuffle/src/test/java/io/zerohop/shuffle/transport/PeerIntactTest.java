package io.zerohop.shuffle.transport;

import static org.assertj.core.api.Assertions.assertThat;

import io.zerohop.device.Leaks;
import io.zerohop.device.exchange.SegmentServer;
import io.zerohop.device.exchange.SocketFolder;
import io.zerohop.device.host.HostDevice;
import io.zerohop.shuffle.Location;
import io.zerohop.shuffle.TestNodes;
import io.zerohop.shuffle.catalog.RootSegment;
import io.zerohop.shuffle.pool.Pool;
import java.time.Duration;
import java.util.List;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** When a lost connection means that the owner is dead, and when it does not. */
class PeerIntactTest {
  private static final long INCARNATION = 5;

  @TempDir private java.nio.file.Path base;
  private final Leaks leaks = new Leaks();
  private final HostDevice device = new HostDevice();
  private final RootSegment root = new RootSegment(device, INCARNATION);
  private final Pool pool = new Pool(device, root, 1 << 20, 1 << 20, Duration.ofMinutes(1));
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
            new SharedMemory(root, List.of(pool), cause -> {}),
            SegmentServer.Limits.DEFAULT);
    server.start();
    peers =
        new PeerDirectory(
            device,
            device,
            folder,
            "reader",
            TestNodes.config(base.resolve("s"), "reader").build());
    peer =
        peers.connect(
            new Location(Location.currentBootId(), folder.identity(), INCARNATION, "owner"),
            "owner");
    assertThat(peer.intact()).isTrue();
  }

  @AfterEach
  void noLeaks() {
    peers.close();
    server.close();
    folder.close();
    pool.close();
    root.close();
    device.close();
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
