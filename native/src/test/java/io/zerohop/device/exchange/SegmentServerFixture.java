package io.zerohop.device.exchange;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.zerohop.device.Device;
import io.zerohop.device.Leaks;
import io.zerohop.device.exchange.ExchangeException.Reason;
import io.zerohop.device.exchange.SegmentServer.SegmentDirectory;
import io.zerohop.device.host.HostDevice;
import java.nio.file.Path;
import java.time.Duration;
import org.assertj.core.api.ThrowableAssert.ThrowingCallable;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.io.TempDir;

/** A segment server in a folder of its own, and what is checked when it has ended. */
abstract class SegmentServerFixture {
  static final Duration LIMIT = Duration.ofSeconds(60);

  @TempDir Path scratch;

  final SegmentTable table = new SegmentTable();
  Leaks leaks;
  Device device;
  SocketFolder folder;
  SegmentServer server;

  @BeforeEach
  void open() {
    new HostDevice().close();
    leaks = new Leaks();
    device = new HostDevice();
    folder = SocketFolder.open(scratch.resolve("s"), "app");
    start(table, SegmentServer.Limits.DEFAULT);
  }

  void start(final SegmentDirectory directory, final SegmentServer.Limits limits) {
    if (server != null) {
      server.close();
    }
    server = new SegmentServer(folder, "server", SegmentTable.SECRET, directory, limits);
    server.start();
  }

  @AfterEach
  void nothingIsLeft() {
    server.close();
    server.close();
    assertThat(server.socket()).doesNotExist();
    folder.close();
    folder.close();
    assertThat(scratch.resolve("s")).doesNotExist();
    assertThat(device.openResources()).isZero();
    device.close();
    leaks.check();
    assertThat(table.disconnected.get()).isEqualTo(table.connected.get());
  }

  PeerLink link(final byte[] secret) {
    return PeerLink.connect(server.socket(), "client", "server", secret, LIMIT);
  }

  PeerLink link() {
    return link(SegmentTable.SECRET);
  }

  static void assertReason(final Reason reason, final ThrowingCallable call) {
    assertThatThrownBy(call)
        .isInstanceOfSatisfying(
            ExchangeException.class, e -> assertThat(e.reason()).isEqualTo(reason));
  }
}
